// SPDX-License-Identifier: Apache-2.0
// A private key that stays in another device, such as a hardware security module (HSM). Its operations block for
// milliseconds, or for as long as the device does not answer, so what needs the key runs on a thread of the key's.
#pragma once
#include <openssl/types.h>

#include <functional>
#include <string>

namespace longhaul::modules {

class HeldKey {
 public:
  virtual ~HeldKey() = default;

  // Once, before anything else: of the certificate that the key belongs to. Keeps a reference.
  virtual void belongs_to(EVP_PKEY* public_key) = 0;
  // Opens the device, without waiting for it, so that a failure is logged before the first use.
  virtual void begin() = 0;

  // `key`, which nothing may use afterwards, is null if the key is not available; `failure` then says why, in words that end
  // a sentence. It is empty otherwise, until an operation of the key fails.
  using Work = std::function<void(EVP_PKEY* key, const std::string& failure)>;
  // Runs `work` on the other thread, in the order of the calls. False: too much waits there already; it is not run. Work that
  // has not begun when this object ends is not run either.
  virtual bool run(Work work) = 0;
  static constexpr std::size_t kMostWaiting = 256;  // handshakes

  // For `longhaul check`: opens the device and waits for it, a minute at most. Empty: the key can be used.
  virtual std::string try_out() = 0;
};

}  // namespace longhaul::modules
