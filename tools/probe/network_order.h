// SPDX-License-Identifier: Apache-2.0
// Numbers in headers of packets. The caller has checked that enough bytes are there.
#pragma once
#include <cstdint>

#include "codecs/bytes.h"

namespace longhaul::probe {

inline std::uint8_t byte_at(Bytes bytes, std::size_t at) { return std::to_integer<std::uint8_t>(bytes[at]); }
inline std::uint16_t word_at(Bytes bytes, std::size_t at) {
  return static_cast<std::uint16_t>(byte_at(bytes, at) << 8 | byte_at(bytes, at + 1));
}
inline std::uint32_t number_at(Bytes bytes, std::size_t at) {
  return std::uint32_t{word_at(bytes, at)} << 16 | word_at(bytes, at + 2);
}

}  // namespace longhaul::probe
