// SPDX-License-Identifier: Apache-2.0
// The position of a file in responses to QUERY_INFO.
#pragma once
#include <optional>

#include "codecs/little_endian.h"
#include "codecs/slice.h"
#include "proxy/modules/smb/smb2/types.h"

namespace longhaul::smb::smb2 {

// The offset of the position in FilePositionInformation and FileAllInformation ([MS-FSCC] 2.4.35 and 2.4.2).
inline std::optional<std::size_t> position_in(std::uint8_t info_class) {
  if (info_class == file_info::position) return 0;
  if (info_class == file_info::all) return 80;
  return std::nullopt;
}

inline Slice with_position(const Slice& info, std::size_t at, std::uint64_t position) {
  if (info.size() < at + sizeof(position)) return info;
  Buffer copy;
  append(copy, info.bytes());
  store_le(copy.data() + at, position);
  return Slice::copy_of(copy);
}

}  // namespace longhaul::smb::smb2
