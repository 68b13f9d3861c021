// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/smb1_signer.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <cassert>
#include <new>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb1/message.h"

namespace longhaul::smb::seal {

Smb1Signer::Smb1Signer(Bytes key) : keyed_(EVP_MD_CTX_new()), context_(EVP_MD_CTX_new()) {
  if (!keyed_ || !context_ || EVP_DigestInit_ex(keyed_.get(), EVP_md5(), nullptr) != 1 ||
      EVP_DigestUpdate(keyed_.get(), key.data(), key.size()) != 1)
    throw std::bad_alloc();
}

// The first eight bytes of MD5 over the key and the message, in which the number and four zeros replace the
// signature.
Smb1Signature Smb1Signer::sign(std::uint32_t number, Bytes header, std::span<const Bytes> rest) {
  assert(header.size() == smb1::kHeaderBytes);
  std::array<std::byte, smb1::kHeaderBytes> head;
  std::copy(header.begin(), header.end(), head.begin());
  store_le(head.data() + smb1_at::signature, std::uint64_t{number});
  bool done = EVP_MD_CTX_copy_ex(context_.get(), keyed_.get()) == 1 &&
              EVP_DigestUpdate(context_.get(), head.data(), head.size()) == 1;
  for (Bytes piece : rest) done = done && EVP_DigestUpdate(context_.get(), piece.data(), piece.size()) == 1;
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  if (!done || EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) != 1) throw std::bad_alloc();
  Smb1Signature signature;
  std::transform(digest.begin(), digest.begin() + signature.size(), signature.begin(),
                 [](unsigned char byte) { return std::byte(byte); });
  return signature;
}

bool Smb1Signer::verify(std::uint32_t number, Bytes message) {
  const Bytes rest = message.subspan(smb1::kHeaderBytes);
  const Smb1Signature right = sign(number, message.first(smb1::kHeaderBytes), std::span(&rest, 1));
  return CRYPTO_memcmp(right.data(), message.data() + smb1_at::signature, right.size()) == 0;
}

}  // namespace longhaul::smb::seal
