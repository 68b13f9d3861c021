// SPDX-License-Identifier: Apache-2.0
// The result of NEGOTIATE for signatures and encryption, and the keys of one session on one leg. A leg is the
// connection between a client and the near half, or between the far half and a server.
#pragma once
#include <cstdint>

#include "crypto/secret.h"
#include "proxy/modules/smb/smb2/types.h"

namespace longhaul::smb::seal {

// [MS-SMB2] 2.2.3.1.7, SMB2_SIGNING_CAPABILITIES
enum class Signing : std::uint16_t { hmac_sha256 = 0, aes_cmac = 1, aes_gmac = 2 };
// 2.2.3.1.2, SMB2_ENCRYPTION_CAPABILITIES
enum class Cipher : std::uint16_t {
  none = 0,
  aes_128_ccm = 1,
  aes_128_gcm = 2,
  aes_256_ccm = 3,
  aes_256_gcm = 4
};
constexpr bool is_ccm(Cipher cipher) { return cipher == Cipher::aes_128_ccm || cipher == Cipher::aes_256_ccm; }
constexpr std::size_t key_bytes(Cipher cipher) {
  return cipher == Cipher::aes_256_ccm || cipher == Cipher::aes_256_gcm ? 32 : 16;
}

struct Agreement {
  smb2::Dialect dialect = smb2::Dialect::none;
  Signing signing = Signing::hmac_sha256;
  Cipher cipher = Cipher::none;
  bool must_sign = false;  // the client or the server requires signatures
};

using PreauthValue = std::array<std::byte, 64>;

struct SessionKeys {
  Secret<16> signing;
  SecretBytes to_server, to_client;  // empty without a cipher
};

// 3.1.4.2, 3.2.5.3: derives the keys from the one that client and server share after their login (at least
// one byte). `preauth` is used in 3.1.1 alone. Throws std::bad_alloc if OpenSSL has no memory.
SessionKeys derive(const Agreement& agreement, Bytes session_key, const PreauthValue& preauth);

// 3.1.1's hash over NEGOTIATE and SESSION_SETUP (3.2.5.2, 3.2.5.3): each message without its frame's head.
void extend(PreauthValue& value, Bytes message);

}  // namespace longhaul::smb::seal
