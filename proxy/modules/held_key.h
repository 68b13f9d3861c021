// SPDX-License-Identifier: Apache-2.0
// A private key that stays in another device, such as a hardware security module (HSM). Its operations block
// for milliseconds, or until the device responds, so work that needs the key runs on the key's own thread.
#pragma once
#include <openssl/types.h>

#include <functional>
#include <string>

namespace longhaul::modules {

class HeldKey {
 public:
  virtual ~HeldKey() = default;

  // Called once, before anything else: the public key of the certificate. Keeps a reference.
  virtual void belongs_to(EVP_PKEY* public_key) = 0;
  // Opens the device, without waiting for it, so that a failure is logged before the first use.
  virtual void begin() = 0;

  // `key` must not be used after the call; it is null if the key is not available. Then `failure` has the
  // reason, as the end of a sentence. Otherwise it is empty, until an operation of the key fails.
  using Work = std::function<void(EVP_PKEY* key, const std::string& failure)>;
  // Runs `work` on the other thread, in the order of the calls. Returns false if too much work is waiting;
  // then it is not run. Work that has not started when this object is destroyed is not run either.
  virtual bool run(Work work) = 0;
  static constexpr std::size_t kMostWaiting = 256;  // handshakes

  // For `longhaul check`: opens the device and waits for it, for at most a minute. Returns an empty text if
  // the key can be used.
  virtual std::string try_out() = 0;
};

}  // namespace longhaul::modules
