// SPDX-License-Identifier: Apache-2.0
// Signatures of SMB1 messages ([MS-CIFS] 2.2.3.1, 3.1.4.1) with the key of one connection. The leg determines
// the number of a message (smb1_leg.h).
#pragma once
#include <openssl/evp.h>

#include <array>
#include <memory>
#include <span>

#include "codecs/bytes.h"

namespace longhaul::smb::seal {

using Smb1Signature = std::array<std::byte, 8>;

namespace smb1_at {  // in a header of SMB1
inline constexpr std::size_t command = 4, flags = 9, flags2 = 10, signature = 14;
}  // namespace smb1_at

class Smb1Signer {
 public:
  // Throws std::bad_alloc if OpenSSL has no memory.
  explicit Smb1Signer(Bytes key);

  // Signs a message: its header (32 bytes, except the signature) and the pieces after it.
  Smb1Signature sign(std::uint32_t number, Bytes header, std::span<const Bytes> rest);
  // Whether the message has the signature in its header. Takes constant time.
  [[nodiscard]] bool verify(std::uint32_t number, Bytes message);

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> keyed_, context_;  // the first has hashed the key
};

}  // namespace longhaul::smb::seal
