// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/cmac.h"

#include <algorithm>
#include <new>

namespace longhaul::smb::seal {
namespace {

// Section 2.3: a left shift by one bit, and the field's polynomial if a bit falls out.
void double_in_field(Secret<16>& key) {
  std::uint8_t carry = 0;
  for (std::size_t i = key.bytes.size(); i-- > 0;) {
    const auto byte = std::to_integer<std::uint8_t>(key.bytes[i]);
    key.bytes[i] = std::byte(static_cast<std::uint8_t>(byte << 1 | carry));
    carry = byte >> 7;
  }
  key.bytes.back() ^= std::byte(carry * 0x87);
}

}  // namespace

Cmac::Cmac(const Secret<16>& key)
    : cipher_(EVP_CIPHER_fetch(nullptr, "AES-128-CBC", nullptr)), context_(EVP_CIPHER_CTX_new()) {
  if (!cipher_ || !context_ ||
      EVP_EncryptInit_ex2(context_.get(), cipher_.get(),
                          reinterpret_cast<const unsigned char*>(key.bytes.data()), nullptr, nullptr) != 1 ||
      EVP_CIPHER_CTX_set_padding(context_.get(), 0) != 1)
    throw std::bad_alloc();
  begin();
  constexpr std::array<std::byte, kBlockBytes> kZero{};
  encrypt(kZero.data(), kZero.size());
  std::copy_n(encrypted_.begin(), kBlockBytes, whole_.bytes.begin());
  OPENSSL_cleanse(encrypted_.data(), kBlockBytes);
  double_in_field(whole_);
  padded_ = whole_;
  double_in_field(padded_);
  begin();
}

void Cmac::begin() {
  constexpr std::array<unsigned char, kBlockBytes> kZero{};
  if (EVP_EncryptInit_ex2(context_.get(), nullptr, nullptr, kZero.data(), nullptr) != 1)
    throw std::bad_alloc();
  last_bytes_ = 0;
}

void Cmac::encrypt(const std::byte* blocks, std::size_t size) {
  int written = 0;
  if (EVP_EncryptUpdate(context_.get(), reinterpret_cast<unsigned char*>(encrypted_.data()), &written,
                        reinterpret_cast<const unsigned char*>(blocks), static_cast<int>(size)) != 1 ||
      static_cast<std::size_t>(written) != size)
    throw std::bad_alloc();
}

void Cmac::update(Bytes piece) {
  if (piece.empty()) return;
  if (last_bytes_ != 0) {
    const std::size_t more = std::min(kBlockBytes - last_bytes_, piece.size());
    std::copy_n(piece.begin(), more, last_.bytes.begin() + static_cast<std::ptrdiff_t>(last_bytes_));
    last_bytes_ += more;
    piece = piece.subspan(more);
    if (piece.empty()) return;
    encrypt(last_.bytes.data(), kBlockBytes);
  }
  while (piece.size() > kBlockBytes) {
    const std::size_t blocks = std::min((piece.size() - 1) / kBlockBytes * kBlockBytes, kMostAtOnce);
    encrypt(piece.data(), blocks);
    piece = piece.subspan(blocks);
  }
  std::copy(piece.begin(), piece.end(), last_.bytes.begin());
  last_bytes_ = piece.size();
}

// Section 2.4
Cmac::Code Cmac::finish() {
  const Secret<16>& key = last_bytes_ == kBlockBytes ? whole_ : padded_;
  if (last_bytes_ < kBlockBytes) {
    const auto end = last_.bytes.begin() + static_cast<std::ptrdiff_t>(last_bytes_);
    std::fill(end, last_.bytes.end(), std::byte{0});
    *end = std::byte{0x80};
  }
  for (std::size_t i = 0; i < kBlockBytes; ++i) last_.bytes[i] ^= key.bytes[i];
  encrypt(last_.bytes.data(), kBlockBytes);
  Code code;
  std::copy_n(encrypted_.begin(), kBlockBytes, code.begin());
  begin();
  return code;
}

}  // namespace longhaul::smb::seal
