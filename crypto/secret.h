// SPDX-License-Identifier: Apache-2.0
// Key material that is wiped at the end of its lifetime, also after an exception or a failed handshake. Its
// owner defines its use.
#pragma once
#include <openssl/crypto.h>

#include <array>
#include <utility>

#include "codecs/byte_writer.h"

namespace longhaul {

template <std::size_t Size>
struct Secret {
  std::array<std::byte, Size> bytes{};
  Secret() = default;
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret() { OPENSSL_cleanse(bytes.data(), Size); }
  bool operator==(const Secret&) const = default;
};

// Its size is fixed at construction: growing would leave a copy in freed memory.
class SecretBytes {
 public:
  SecretBytes() = default;
  explicit SecretBytes(std::size_t size) : bytes_(size) {}
  SecretBytes(SecretBytes&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  SecretBytes& operator=(SecretBytes&& other) noexcept {
    if (this == &other) return *this;
    wipe();
    bytes_ = std::exchange(other.bytes_, {});
    return *this;
  }
  ~SecretBytes() { wipe(); }

  void wipe() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

  std::byte* data() { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  operator Bytes() const { return bytes_; }
  bool operator==(const SecretBytes&) const = default;

 private:
  Buffer bytes_;
};

}  // namespace longhaul
