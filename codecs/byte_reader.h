// SPDX-License-Identifier: Apache-2.0
// Reads wire integers and bytes from a borrowed span and never beyond its end. A read that does not fit
// returns nullopt and consumes nothing; the caller decides whether to wait for more or to fail.
#pragma once
#include <optional>
#include <string_view>

#include "codecs/bytes.h"

namespace longhaul {

class ByteReader {
 public:
  explicit ByteReader(Bytes bytes) : rest_(bytes) {}

  std::size_t remaining() const { return rest_.size(); }
  Bytes rest() const { return rest_; }

  std::optional<std::uint8_t> u8() {
    auto value = fixed(1);
    return value ? std::optional(static_cast<std::uint8_t>(*value)) : std::nullopt;
  }
  std::optional<std::uint16_t> fixed16() {
    auto value = fixed(2);
    return value ? std::optional(static_cast<std::uint16_t>(*value)) : std::nullopt;
  }
  std::optional<std::uint64_t> fixed64() { return fixed(8); }

  // RFC 9000, section 16: the two highest bits of the first byte give the length.
  std::optional<std::uint64_t> varint() {
    if (rest_.empty()) return std::nullopt;
    std::size_t size = std::size_t{1} << (std::to_integer<unsigned>(rest_[0]) >> 6);
    auto value = fixed(size);
    if (!value) return std::nullopt;
    return *value & (~0ull >> (64 - 8 * size + 2));
  }

  std::optional<Bytes> bytes(std::uint64_t size) {
    if (size > rest_.size()) return std::nullopt;
    Bytes taken = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(static_cast<std::size_t>(size));
    return taken;
  }

  // A length as varint, then that many bytes.
  std::optional<Bytes> sized() {
    ByteReader attempt = *this;
    auto size = attempt.varint();
    if (!size) return std::nullopt;
    auto content = attempt.bytes(*size);
    if (content) *this = attempt;
    return content;
  }
  std::optional<std::string_view> text() {
    auto content = sized();
    return content ? std::optional(as_text(*content)) : std::nullopt;
  }

 private:
  std::optional<std::uint64_t> fixed(std::size_t size) {
    if (rest_.size() < size) return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value = value << 8 | std::to_integer<std::uint64_t>(rest_[i]);
    rest_ = rest_.subspan(size);
    return value;
  }

  Bytes rest_;
};

}  // namespace longhaul
