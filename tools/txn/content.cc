// SPDX-License-Identifier: Apache-2.0
// SplitMix64 by number: any word of the content without those before it.
#include "tools/txn/content.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace longhaul::txn {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

ByteSource::ByteSource(std::uint64_t key, std::uint64_t transaction, Direction direction)
    : seed_(mix(mix(key) ^ (2 * transaction + static_cast<std::uint64_t>(direction)))) {}

std::uint64_t ByteSource::word(std::uint64_t number) const {
  return mix(seed_ + number * 0x9e3779b97f4a7c15);
}

void ByteSource::fill(std::uint64_t offset, MutableBytes out) const {
  const auto part = [&](std::size_t size) {  // of one word
    const std::uint64_t value = word(offset / kWord);
    std::memcpy(out.data(), reinterpret_cast<const std::byte*>(&value) + offset % kWord, size);
    out = out.subspan(size);
    offset += size;
  };
  if (offset % kWord && !out.empty()) part(std::min<std::size_t>(kWord - offset % kWord, out.size()));
  std::uint64_t number = offset / kWord;
  const std::size_t whole = out.size() / kWord * kWord;
  for (std::size_t at = 0; at < whole; at += kWord) {
    const std::uint64_t value = word(number++);
    std::memcpy(out.data() + at, &value, kWord);
  }
  out = out.subspan(whole);
  offset += whole;
  if (!out.empty()) part(out.size());
}

bool ByteSource::matches(std::uint64_t offset, Bytes bytes) const {
  std::array<std::byte, 4096> expected;
  while (!bytes.empty()) {
    const auto part = std::min(bytes.size(), expected.size());
    fill(offset, MutableBytes(expected).first(part));
    if (std::memcmp(expected.data(), bytes.data(), part) != 0) return false;
    bytes = bytes.subspan(part);
    offset += part;
  }
  return true;
}

}  // namespace longhaul::txn
