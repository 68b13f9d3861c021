// SPDX-License-Identifier: Apache-2.0
// Short names for reading little-endian integers at offsets in SMB1 messages. The caller has checked that an
// offset is inside.
#pragma once
#include "codecs/little_endian.h"

namespace longhaul::smb::smb1 {

inline std::uint8_t u8_at(Bytes in, std::size_t at) { return load_le<std::uint8_t>(in, at); }
inline std::uint16_t u16_at(Bytes in, std::size_t at) { return load_le<std::uint16_t>(in, at); }
inline std::uint32_t u32_at(Bytes in, std::size_t at) { return load_le<std::uint32_t>(in, at); }
inline std::uint64_t u64_at(Bytes in, std::size_t at) { return load_le<std::uint64_t>(in, at); }

template <class T>
void set_field(MutableBytes in, std::size_t at, T value) {
  assert(at + sizeof(T) <= in.size());
  store_le<T>(in.data() + at, value);
}

template <class T>
void append_field(Buffer& out, T value) {
  out.resize(out.size() + sizeof(T));
  store_le<T>(out.data() + out.size() - sizeof(T), value);
}

}  // namespace longhaul::smb::smb1
