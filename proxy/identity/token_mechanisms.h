// SPDX-License-Identifier: Apache-2.0
// The mechanisms of PKCS#11 for the signatures of TLS.
#pragma once
#include <span>
#include <string>

#include "proxy/identity/token.h"
#include "proxy/identity/token_method.h"

namespace longhaul::identity {

// The parameters of Signer::sign(), the result of Token::sign().
std::string sign_with(Token& token, Signer::Kind kind, int hash, Bytes data, std::span<unsigned char> out,
                      std::size_t& size);

// Which mechanisms a key of that type needs and the token does not have, for display; empty if it has enough.
std::string missing_mechanisms(const Token& token, bool is_rsa);

}  // namespace longhaul::identity
