// SPDX-License-Identifier: Apache-2.0
// Little-endian wire integers, as in SMB: read from a borrowed span, never beyond its end, and appended to a
// buffer. byte_reader.h and byte_writer.h have big-endian ones and variable lengths.
#pragma once
#include <concepts>

#include "codecs/byte_writer.h"

namespace longhaul {

// The integer at `at`, which must be inside.
template <std::unsigned_integral Int>
Int load_le(Bytes bytes, std::size_t at) {
  assert(at <= bytes.size() && sizeof(Int) <= bytes.size() - at);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(Int); ++i)
    value |= std::to_integer<std::uint64_t>(bytes[at + i]) << 8 * i;
  return static_cast<Int>(value);
}

template <std::unsigned_integral Int>
void store_le(std::byte* at, Int value) {
  for (std::size_t i = 0; i < sizeof(Int); ++i) at[i] = std::byte(std::uint64_t{value} >> 8 * i & 0xff);
}

// For layouts of many fixed fields, which are read in one go and checked once: a read that does not fit, and
// every later one, returns zero or nothing; ok() reports it.
class LittleEndianReader {
 public:
  explicit LittleEndianReader(Bytes bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  Bytes rest() const { return rest_; }
  std::size_t remaining() const { return rest_.size(); }

  std::uint8_t u8() { return take<std::uint8_t>(); }
  std::uint16_t u16() { return take<std::uint16_t>(); }
  std::uint32_t u32() { return take<std::uint32_t>(); }
  std::uint64_t u64() { return take<std::uint64_t>(); }

  Bytes bytes(std::uint64_t size) {
    if (!ok_ || size > rest_.size()) {
      fail();
      return {};
    }
    Bytes taken = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(static_cast<std::size_t>(size));
    return taken;
  }
  void skip(std::uint64_t size) { (void)bytes(size); }
  // The caller rejects the value, with the same effect as a read that did not fit.
  void fail() {
    ok_ = false;
    rest_ = {};
  }

 private:
  template <class Int>
  Int take() {
    Bytes taken = bytes(sizeof(Int));
    return taken.empty() ? Int{0} : load_le<Int>(taken, 0);
  }

  Bytes rest_;
  bool ok_ = true;
};

class LittleEndianWriter {
 public:
  explicit LittleEndianWriter(Buffer& out) : out_(out) {}

  void u8(std::uint8_t value) { put(value); }
  void u16(std::uint16_t value) { put(value); }
  void u32(std::uint32_t value) { put(value); }
  void u64(std::uint64_t value) { put(value); }
  void bytes(Bytes bytes) { append(out_, bytes); }
  void zeros(std::size_t count) { out_.insert(out_.end(), count, std::byte{0}); }

 private:
  template <class Int>
  void put(Int value) {
    std::size_t filled = out_.size();
    out_.resize(filled + sizeof(Int));
    store_le(out_.data() + filled, value);
  }

  Buffer& out_;
};

}  // namespace longhaul
