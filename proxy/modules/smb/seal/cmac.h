// SPDX-License-Identifier: Apache-2.0
// AES-CMAC with a 128-bit key (RFC 4493), by AES in CBC mode: OpenSSL 3.0's own CMAC gives the cipher one
// block at a time, which takes twice as long.
#pragma once
#include <openssl/evp.h>

#include <array>
#include <memory>

#include "crypto/secret.h"

namespace longhaul::smb::seal {

class Cmac {
 public:
  using Code = std::array<std::byte, 16>;

  // Throws std::bad_alloc if OpenSSL has no memory, as the others do.
  explicit Cmac(const Secret<16>& key);

  // The bytes of one message, in pieces; finish() begins the next.
  void update(Bytes piece);
  Code finish();

 private:
  static constexpr std::size_t kBlockBytes = 16, kMostAtOnce = 4096;
  struct Free {
    void operator()(EVP_CIPHER* cipher) const { EVP_CIPHER_free(cipher); }
    void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
  };
  void begin();
  void encrypt(const std::byte* blocks, std::size_t size);

  std::unique_ptr<EVP_CIPHER, Free> cipher_;
  std::unique_ptr<EVP_CIPHER_CTX, Free> context_;
  Secret<16> whole_, padded_;  // what the last block is combined with: K1, K2
  Secret<16> last_;            // at least one byte of the message stays here until finish()
  std::size_t last_bytes_ = 0;
  std::array<std::byte, kMostAtOnce> encrypted_;
};

}  // namespace longhaul::smb::seal
