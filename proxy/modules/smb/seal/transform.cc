// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/transform.h"

#include <openssl/rand.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/frames.h"

namespace longhaul::smb::seal {
namespace {

constexpr std::size_t kTransformTagAt = 4, kTransformNonceAt = 20, kTransformSizeAt = 36, kTransformFlagsAt = 42, kTransformSessionAt = 44, kTransformTagBytes = 16;
constexpr std::uint16_t kEncrypted = 1;

const char* name_of(Cipher cipher) {
  switch (cipher) {
    case Cipher::aes_128_ccm:
      return "AES-128-CCM";
    case Cipher::aes_256_ccm:
      return "AES-256-CCM";
    case Cipher::aes_256_gcm:
      return "AES-256-GCM";
    default:
      return "AES-128-GCM";
  }
}

const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }
unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

}  // namespace

Transform::Transform(Cipher cipher, Bytes key)
    : cipher_kind_(cipher),
      key_(key.size()),
      cipher_(EVP_CIPHER_fetch(nullptr, name_of(cipher), nullptr)),
      context_(EVP_CIPHER_CTX_new()) {
  std::copy(key.begin(), key.end(), key_.data());
  if (!cipher_ || !context_ || RAND_bytes(raw(nonce_.data()), sizeof(Nonce)) != 1) throw std::bad_alloc();
  // 2.2.41: 11 bytes for CCM, 12 for GCM; the rest is zero.
  std::fill(nonce_.begin() + (is_ccm(cipher) ? 11 : 12), nonce_.end(), std::byte{0});
}

Transform::Nonce Transform::next_nonce() {
  Nonce nonce = nonce_;
  store_le(nonce.data(), load_le<std::uint64_t>(nonce, 0) + ++used_);
  return nonce;
}

bool Transform::begin(bool seals, const std::byte* nonce, const std::byte* tag, std::size_t size,
                      Bytes associated) {
  const bool ccm = is_ccm(cipher_kind_);
  EVP_CIPHER_CTX* const context = context_.get();
  int written = 0;
  // CCM must know its sizes before the key, and the size of the text before the associated data.
  return EVP_CipherInit_ex2(context, cipher_.get(), nullptr, nullptr, seals, nullptr) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, ccm ? 11 : 12, nullptr) == 1 &&
         (!(ccm || tag) || EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, kTransformTagBytes,
                                               const_cast<std::byte*>(tag)) == 1) &&
         EVP_CipherInit_ex2(context, nullptr, raw(key_.data()), raw(nonce), seals, nullptr) == 1 &&
         (!ccm ||
          EVP_CipherUpdate(context, nullptr, &written, nullptr, static_cast<int>(size)) == 1) &&
         EVP_CipherUpdate(context, nullptr, &written, raw(associated.data()),
                          static_cast<int>(associated.size())) == 1;
}

Slice Transform::seal(smb2::SessionId session, std::span<const Bytes> message, std::size_t size) {
  std::byte* memory = nullptr;
  Slice frame = Slice::unfilled(kFrameHeadBytes + kTransformBytes + size, memory);
  write_frame_head(kTransformBytes + size, memory);
  std::byte* const transform = memory + kFrameHeadBytes;
  std::memset(transform, 0, kTransformBytes);
  store_le(transform, std::uint32_t{0x424D53FD});
  const Nonce nonce = next_nonce();
  std::copy(nonce.begin(), nonce.end(), transform + kTransformNonceAt);
  store_le(transform + kTransformSizeAt, static_cast<std::uint32_t>(size));
  store_le(transform + kTransformFlagsAt, kEncrypted);
  store_le(transform + kTransformSessionAt, session);

  int written = 0;
  bool done = begin(true, nonce.data(), nullptr, size,
                    {transform + kTransformNonceAt, kTransformBytes - kTransformNonceAt});
  const auto encrypt = [&](const std::byte* from, std::byte* to, std::size_t bytes) {
    done =
        done && EVP_CipherUpdate(context_.get(), raw(to), &written, raw(from), static_cast<int>(bytes)) == 1;
  };
  // CCM takes its text at once, so the pieces are put together first.
  std::byte* const text = transform + kTransformBytes;
  std::byte* end = text;
  for (Bytes piece : message) {
    if (is_ccm(cipher_kind_))
      std::copy(piece.begin(), piece.end(), end);
    else if (!piece.empty())
      encrypt(piece.data(), end, piece.size());
    end += piece.size();
  }
  if (is_ccm(cipher_kind_)) encrypt(text, text, size);
  if (!done || EVP_CipherFinal_ex(context_.get(), raw(end), &written) != 1 ||
      EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, kTransformTagBytes,
                          transform + kTransformTagAt) != 1)
    throw std::bad_alloc();
  return frame;
}

std::optional<Slice> Transform::open(Bytes transform, std::byte*& memory) {
  if (transform.size() <= kTransformBytes ||
      load_le<std::uint32_t>(transform, kTransformSizeAt) != transform.size() - kTransformBytes)
    return std::nullopt;
  const Bytes text = transform.subspan(kTransformBytes);
  Slice frame = Slice::unfilled(kFrameHeadBytes + text.size(), memory);
  write_frame_head(text.size(), memory);
  std::byte* const plain = memory + kFrameHeadBytes;
  int written = 0;
  if (!begin(false, transform.data() + kTransformNonceAt, transform.data() + kTransformTagAt, text.size(),
             transform.subspan(kTransformNonceAt, kTransformBytes - kTransformNonceAt)))
    throw std::bad_alloc();
  if (EVP_CipherUpdate(context_.get(), raw(plain), &written, raw(text.data()),
                       static_cast<int>(text.size())) != 1)
    return std::nullopt;  // CCM reports a forged text here
  std::array<unsigned char, 16> none;
  if (!is_ccm(cipher_kind_) && EVP_CipherFinal_ex(context_.get(), none.data(), &written) != 1)
    return std::nullopt;
  return frame;
}

}  // namespace longhaul::smb::seal
