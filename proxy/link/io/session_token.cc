// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/session_token.h"

#include <openssl/rand.h>
#include <openssl/sha.h>

#include <cstring>

namespace longhaul::link {

Token random_token() {
  Token token;
  RAND_bytes(reinterpret_cast<unsigned char*>(token.data()), sizeof token);
  return token;
}

Token new_session_id(const Token& dialler, const Token& acceptor) {
  Buffer both(dialler.begin(), dialler.end());
  both.insert(both.end(), acceptor.begin(), acceptor.end());
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(both.data()), both.size(), digest);
  Token id;
  std::memcpy(id.data(), digest, sizeof id);
  return id;
}

}  // namespace longhaul::link
