// SPDX-License-Identifier: Apache-2.0
// A private key in a PKCS#11 token, opened and used by a thread of its own: a token that does not respond
// delays only the users of this key. A failed token is opened again, but never after its PIN was refused,
// because it could lock.
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

  // `pin`: as for Token::open().
  TokenKey(TokenUri uri, SecretBytes pin);
  // The thread ends when its current call returns; it shares ownership of everything that it needs.
  ~TokenKey() override;

  void belongs_to(EVP_PKEY* public_key) override;
  void begin() override;
  bool run(Work work) override;
  std::string try_out() override;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

// Call before the process ends, after the last TokenKey: waits until all sessions are closed. Returns false
// if a token did not respond in time: a thread still runs, so nothing that it uses may be destroyed.
bool wait_for_token_threads(std::chrono::milliseconds limit);

}  // namespace longhaul::identity
