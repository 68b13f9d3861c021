// SPDX-License-Identifier: Apache-2.0
// Encrypted SMB2 messages ([MS-SMB2] 2.2.41, 3.1.4.3, 3.1.4.4) with the key of one session, on one leg in one
// direction.
#pragma once
#include <openssl/evp.h>

#include <array>
#include <memory>
#include <optional>
#include <span>

#include "codecs/slice.h"
#include "proxy/modules/smb/seal/agreement.h"

namespace longhaul::smb::seal {

inline constexpr std::size_t kTransformBytes = 52;

class Transform {
 public:
  // `key` has key_bytes(cipher).
  Transform(Cipher cipher, Bytes key);

  // A whole frame with its head of four bytes, for a message in pieces of `size` bytes in total, fewer than
  // 2^24 - 52. No nonce is used twice: they count from a random one, because before 3.1.1 the client (or the
  // server) uses the same key on the other leg. Throws std::bad_alloc if OpenSSL has no memory.
  Slice seal(smb2::SessionId session, std::span<const Bytes> message, std::size_t size);

  // The message in a transform, as a frame with its head of four bytes. Returns nullopt if it was not made
  // with this key, or was changed in transit. `memory`: of that frame, which is not shared yet.
  std::optional<Slice> open(Bytes transform, std::byte*& memory);

 private:
  using Nonce = std::array<std::byte, 16>;
  struct Free {
    void operator()(EVP_CIPHER* cipher) const { EVP_CIPHER_free(cipher); }
    void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
  };
  Nonce next_nonce();
  bool begin(bool seals, const std::byte* nonce, const std::byte* tag, std::size_t size, Bytes associated);

  Cipher cipher_kind_;
  SecretBytes key_;
  std::unique_ptr<EVP_CIPHER, Free> cipher_;
  std::unique_ptr<EVP_CIPHER_CTX, Free> context_;
  Nonce nonce_{};
  std::uint64_t used_ = 0;
};

}  // namespace longhaul::smb::seal
