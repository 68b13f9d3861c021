// SPDX-License-Identifier: Apache-2.0
// Bytes as golden vectors have them.
#pragma once
#include <string>
#include <string_view>

#include "codecs/bytes.h"

namespace longhaul {

inline std::string hex(Bytes bytes) {
  std::string text;
  for (std::byte b : bytes) {
    text += "0123456789abcdef"[std::to_integer<unsigned>(b) >> 4];
    text += "0123456789abcdef"[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

inline Buffer from_hex(std::string_view text) {
  Buffer bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  return bytes;
}

}  // namespace longhaul
