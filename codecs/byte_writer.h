// SPDX-License-Identifier: Apache-2.0
// Appends wire integers and bytes to a growing buffer. Variable-length integers are those of RFC 9000,
// section 16.
#pragma once
#include <algorithm>
#include <cassert>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "codecs/bytes.h"

namespace longhaul {

// Leaves new elements uninitialised, so that a growing buffer is not zeroed first.
template <class T>
struct UnfilledAllocator : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = UnfilledAllocator<U>;
  };
  template <class U>
  void construct(U* place) {
    ::new (static_cast<void*>(place)) U;
  }
  template <class U, class Arg>
  void construct(U* place, Arg&& arg) {
    ::new (static_cast<void*>(place)) U(std::forward<Arg>(arg));
  }
};

using Buffer = std::vector<std::byte, UnfilledAllocator<std::byte>>;

// As fast as memcpy; with a custom allocator, vector::insert would copy byte by byte.
inline void append(Buffer& out, Bytes bytes) {
  if (bytes.empty()) return;
  std::size_t filled = out.size();
  if (out.capacity() - filled < bytes.size()) {
    Buffer larger;
    larger.reserve(std::max(2 * out.capacity(), filled + bytes.size()));
    larger.resize(filled);
    if (filled) std::memcpy(larger.data(), out.data(), filled);
    out.swap(larger);
  }
  out.resize(filled + bytes.size());
  std::memcpy(out.data() + filled, bytes.data(), bytes.size());
}

inline constexpr std::uint64_t kMaxVarint = (1ull << 62) - 1;

constexpr std::size_t varint_size(std::uint64_t value) {
  return value < (1u << 6) ? 1 : value < (1u << 14) ? 2 : value < (1u << 30) ? 4 : 8;
}

class ByteWriter {
 public:
  explicit ByteWriter(Buffer& out) : out_(out) {}

  void u8(std::uint8_t value) { out_.push_back(std::byte{value}); }
  void fixed16(std::uint16_t value) { big_endian(value, 2); }
  void fixed64(std::uint64_t value) { big_endian(value, 8); }

  void varint(std::uint64_t value) {
    assert(value <= kMaxVarint);
    switch (varint_size(value)) {
      case 1:
        return big_endian(value, 1);
      case 2:
        return big_endian(value | (1ull << 14), 2);
      case 4:
        return big_endian(value | (2ull << 30), 4);
      default:
        return big_endian(value | (3ull << 62), 8);
    }
  }

  void bytes(Bytes bytes) { append(out_, bytes); }

  // A length as varint, then the bytes.
  void sized(Bytes content) {
    varint(content.size());
    bytes(content);
  }
  void text(std::string_view content) { sized(as_bytes(content)); }

 private:
  void big_endian(std::uint64_t value, int size) {
    std::size_t filled = out_.size();
    out_.resize(filled + static_cast<std::size_t>(size));
    std::byte* at = out_.data() + filled;
    for (int shift = (size - 1) * 8; shift >= 0; shift -= 8) *at++ = std::byte(value >> shift & 0xff);
  }

  Buffer& out_;
};

}  // namespace longhaul
