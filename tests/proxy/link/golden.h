// SPDX-License-Identifier: Apache-2.0
// Golden vectors: lines of "name: hex" in tests/proxy/link/golden. They pin the wire format; a change of one
// is a change of the protocol.
#pragma once
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "codecs/byte_writer.h"

namespace longhaul::link::golden {

inline std::string to_hex(Bytes bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::byte b : bytes) {
    text += kDigits[std::to_integer<unsigned>(b) >> 4];
    text += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

inline Buffer from_hex(const std::string& text) {
  Buffer bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(std::byte(std::stoul(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

struct Line {
  std::string name, hex;
};

// Blank lines and those that begin with # are for people; so are spaces inside the hex.
inline std::vector<Line> read_lines(const std::string& file) {
  std::ifstream in(std::string(LONGHAUL_SOURCE_DIR) + "/tests/proxy/link/golden/" + file);
  REQUIRE(in);
  std::vector<Line> lines;
  for (std::string text; std::getline(in, text);) {
    if (text.empty() || text[0] == '#') continue;
    std::size_t colon = text.find(':');
    REQUIRE(colon != std::string::npos);
    Line line{text.substr(0, colon), text.substr(colon + 1)};
    std::erase(line.hex, ' ');
    REQUIRE(line.hex.size() % 2 == 0);
    lines.push_back(std::move(line));
  }
  return lines;
}

inline std::map<std::string, std::string> read(const std::string& file) {
  std::map<std::string, std::string> vectors;
  for (const Line& line : read_lines(file)) vectors[line.name] = line.hex;
  return vectors;
}

}  // namespace longhaul::link::golden
