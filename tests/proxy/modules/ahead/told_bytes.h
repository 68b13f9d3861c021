// SPDX-License-Identifier: Apache-2.0
// Bytes that tell their place and version, for the tests of what is read ahead.
#pragma once
#include <catch2/catch.hpp>
#include <string>

#include "proxy/modules/ahead/ahead_cache.h"

namespace longhaul::ahead::test {

inline OpenKey key(unsigned n) {
  OpenKey key{.session = 1, .tree = 2};
  key.id[0] = std::byte(n);
  return key;
}

inline std::string content(std::uint64_t offset, std::size_t size, unsigned version = 0) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text.push_back(static_cast<char>((offset + i) * 7 + version * 31));
  return text;
}
inline Slice bytes(std::uint64_t offset, std::size_t size, unsigned version = 0) {
  return Slice::copy_of(as_bytes(content(offset, size, version)));
}
inline std::string text(const ReadData& data) {
  std::string all;
  for (const Slice& piece : data.pieces) all += as_text(piece.bytes());
  CHECK(all.size() == data.length);
  return all;
}

}  // namespace longhaul::ahead::test
