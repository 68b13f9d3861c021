// SPDX-License-Identifier: Apache-2.0
// A private key in a PKCS#11 token, opened and used by a thread of its own: a token that does not answer
// holds up what needs this key, and nothing else. Opened again when it fails, but never after its PIN was
// refused: tokens lock.
#pragma once
#include <chrono>
#include <memory>

#include "crypto/secret.h"
#include "proxy/identity/token_uri.h"
#include "proxy/modules/held_key.h"

namespace longhaul::identity {

class TokenKey final : public modules::HeldKey {
 public:
  static constexpr std::chrono::seconds kRetryAfter{10};

  // `pin`: as Token::open() takes it.
  TokenKey(TokenUri uri, SecretBytes pin);
  // The thread ends when the call that it is in returns; it holds all that it needs.
  ~TokenKey() override;

  void belongs_to(EVP_PKEY* public_key) override;
  void begin() override;
  bool run(Work work) override;
  std::string try_out() override;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

// Before the process ends, after the last TokenKey: sessions are closed then, unless a token does not answer
// in that time. False: a thread still runs, so nothing that it uses may be destroyed.
bool wait_for_token_threads(std::chrono::milliseconds limit);

}  // namespace longhaul::identity
