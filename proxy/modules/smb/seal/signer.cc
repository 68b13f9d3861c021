// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/signer.h"

#include <openssl/core_names.h>
#include <openssl/params.h>

#include <algorithm>
#include <cassert>
#include <new>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb2/header.h"

namespace longhaul::smb::seal {
namespace {

const unsigned char* raw_of(Bytes bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }

}  // namespace

Signer::Signer(Signing signing, const Secret<16>& key) : signing_(signing), key_(key) {
  if (signing == Signing::aes_cmac) {
    cmac_.emplace(key);
    return;
  }
  const bool hashes = signing == Signing::hmac_sha256;
  mac_.reset(EVP_MAC_fetch(nullptr, hashes ? "HMAC" : "GMAC", nullptr));
  if (mac_) context_.reset(EVP_MAC_CTX_new(mac_.get()));
  char digest[] = "SHA256", gcm[] = "AES-128-GCM";
  const OSSL_PARAM params[] = {hashes ? OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0)
                                      : OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_CIPHER, gcm, 0),
                               OSSL_PARAM_construct_end()};
  if (!context_ || EVP_MAC_CTX_set_params(context_.get(), params) != 1) throw std::bad_alloc();
}

Signature Signer::sign(Bytes header, std::span<const Bytes> rest) {
  assert(header.size() == smb2::kHeaderBytes);
  std::array<std::byte, smb2::kHeaderBytes> head;
  std::copy(header.begin(), header.end(), head.begin());
  std::fill_n(head.begin() + smb2::header_at::signature, sizeof(Signature), std::byte{0});
  if (!cmac_) return sign_with_openssl(head, rest);
  cmac_->update(head);
  for (Bytes piece : rest) cmac_->update(piece);
  return cmac_->finish();
}

// 3.1.4.1: AES-GMAC's nonce is the MessageId, with the sender's flags: bit 0 the server, bit 1 a CANCEL.
Signature Signer::sign_with_openssl(Bytes head, std::span<const Bytes> rest) {
  std::array<std::byte, 12> nonce{};
  OSSL_PARAM params[] = {OSSL_PARAM_construct_end(), OSSL_PARAM_construct_end()};
  if (signing_ == Signing::aes_gmac) {
    std::copy_n(head.begin() + smb2::header_at::message_id, 8, nonce.begin());
    const bool from_server = load_le<std::uint32_t>(head, smb2::header_at::flags) & smb2::header_flags::response;
    const bool cancels = load_le<std::uint16_t>(head, smb2::header_at::command) == std::uint16_t(smb2::Command::cancel);
    nonce[8] = std::byte((from_server ? 1 : 0) | (cancels ? 2 : 0));
    params[0] = OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_IV, nonce.data(), nonce.size());
  }
  bool done =
      EVP_MAC_init(context_.get(), raw_of(key_.bytes), key_.bytes.size(), params) == 1 &&
      EVP_MAC_update(context_.get(), raw_of(head), head.size()) == 1;
  for (Bytes piece : rest)
    done = done && (piece.empty() || EVP_MAC_update(context_.get(), raw_of(piece), piece.size()) == 1);
  std::array<unsigned char, 32> found{};
  std::size_t size = 0;
  if (!done || EVP_MAC_final(context_.get(), found.data(), &size, found.size()) != 1) throw std::bad_alloc();
  Signature signature;
  std::transform(found.begin(), found.begin() + signature.size(), signature.begin(),
                 [](unsigned char byte) { return std::byte(byte); });
  return signature;
}

bool Signer::verify(Bytes header, Bytes rest) {
  const Signature right = sign(header, std::span(&rest, 1));
  return CRYPTO_memcmp(right.data(), header.data() + smb2::header_at::signature, right.size()) == 0;
}

}  // namespace longhaul::smb::seal
