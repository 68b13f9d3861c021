// SPDX-License-Identifier: Apache-2.0
// Signatures of SMB2 messages ([MS-SMB2] 3.1.4.1) with the key of one session on one leg.
#pragma once
#include <openssl/evp.h>

#include <array>
#include <memory>
#include <optional>
#include <span>

#include "proxy/modules/smb/seal/agreement.h"
#include "proxy/modules/smb/seal/cmac.h"

namespace longhaul::smb::seal {

using Signature = std::array<std::byte, 16>;

class Signer {
 public:
  Signer(Signing signing, const Secret<16>& key);

  // Signs one element of a message: its header (64 bytes, whose own signature counts as zero) and the pieces
  // after it, up to the next element. Throws std::bad_alloc if OpenSSL has no memory.
  Signature sign(Bytes header, std::span<const Bytes> rest);
  // Whether the element has the signature in its header. Takes constant time.
  [[nodiscard]] bool verify(Bytes header, Bytes rest);

 private:
  struct Free {
    void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }
    void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
  };
  Signature sign_with_openssl(Bytes head, std::span<const Bytes> rest);

  Signing signing_;
  Secret<16> key_;
  std::optional<Cmac> cmac_;  // of AES-CMAC; OpenSSL has the others
  std::unique_ptr<EVP_MAC, Free> mac_;
  std::unique_ptr<EVP_MAC_CTX, Free> context_;
};

}  // namespace longhaul::smb::seal
