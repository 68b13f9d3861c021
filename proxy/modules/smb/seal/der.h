// SPDX-License-Identifier: Apache-2.0
// Parses ASN.1 in tokens: elements with one-byte tags and definite lengths, never beyond the end of the input
// (X.690, section 8.1). Lengths need not be the shortest: SPNEGO of some clients is BER.
#pragma once
#include <cstdint>
#include <optional>

#include "codecs/bytes.h"

namespace longhaul::smb::seal {

namespace der {
inline constexpr std::uint8_t kInteger = 0x02, kBitString = 0x03, kOctetString = 0x04, kOid = 0x06,
                              kEnumerated = 0x0a, kGeneralizedTime = 0x18, kGeneralString = 0x1b,
                              kSequence = 0x30;
constexpr std::uint8_t application(unsigned number) { return static_cast<std::uint8_t>(0x60 | number); }
constexpr std::uint8_t context(unsigned number) { return static_cast<std::uint8_t>(0xa0 | number); }
}  // namespace der

class DerReader {
 public:
  explicit DerReader(Bytes bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  Bytes rest() const { return rest_; }
  std::optional<std::uint8_t> tag() const {
    return rest_.empty() ? std::nullopt : std::optional(std::to_integer<std::uint8_t>(rest_[0]));
  }

  // The content of the next element, with any tag.
  std::optional<Bytes> next() {
    if (rest_.size() < 2 || (std::to_integer<unsigned>(rest_[0]) & 0x1f) == 0x1f) return std::nullopt;
    const auto first = std::to_integer<std::size_t>(rest_[1]);
    std::size_t at = 2, size = first;
    if (first & 0x80) {
      const std::size_t digits = first & 0x7f;
      if (digits == 0 || digits > 4 || rest_.size() - at < digits) return std::nullopt;
      size = 0;
      for (std::size_t i = 0; i < digits; ++i) size = size << 8 | std::to_integer<std::size_t>(rest_[at++]);
    }
    if (size > rest_.size() - at) return std::nullopt;
    const Bytes content = rest_.subspan(at, size);
    rest_ = rest_.subspan(at + size);
    return content;
  }

  // The content of the next element, if it has this tag.
  std::optional<Bytes> take(std::uint8_t wanted) { return tag() == wanted ? next() : std::nullopt; }

  // The field [number] of a SEQUENCE, whose fields are in order: earlier ones are skipped.
  std::optional<Bytes> field(unsigned number) {
    while (tag() && *tag() < der::context(number))
      if (!next()) return std::nullopt;
    return take(der::context(number));
  }
  // The same, if the field holds one element with that tag.
  std::optional<Bytes> field(unsigned number, std::uint8_t wanted) {
    const auto content = field(number);
    return content ? DerReader(*content).take(wanted) : std::nullopt;
  }
  // An INTEGER of at most 32 bits.
  std::optional<std::int32_t> integer(unsigned number) {
    const auto digits = field(number, der::kInteger);
    // Key versions are unsigned in RFC 4120: five bytes, of which the first is zero.
    if (!digits || digits->empty() || digits->size() > 5) return std::nullopt;
    if (digits->size() == 5 && (*digits)[0] != std::byte{0}) return std::nullopt;
    std::uint32_t value = (std::to_integer<unsigned>((*digits)[0]) & 0x80) ? ~0u : 0u;
    for (const std::byte digit : *digits) value = value << 8 | std::to_integer<std::uint32_t>(digit);
    return static_cast<std::int32_t>(value);
  }

 private:
  Bytes rest_;
};

}  // namespace longhaul::smb::seal
