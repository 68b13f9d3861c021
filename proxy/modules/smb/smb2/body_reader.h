// SPDX-License-Identifier: Apache-2.0
// Reads the body of one SMB2 request or response: the fixed fields in order, and the buffers that they point
// to. For the parsers of this folder.
#pragma once
#include <algorithm>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb2/header.h"

namespace longhaul::smb::smb2 {

class BodyReader : public LittleEndianReader {
 public:
  // The body must begin with `structure_bytes`. An odd number includes one byte of the buffer after the fixed
  // fields, which is not always present.
  BodyReader(Bytes element, std::uint16_t structure_bytes)
      : LittleEndianReader(element.size() < kHeaderBytes ? Bytes{} : element.subspan(kHeaderBytes)),
        element_(element) {
    if (u16() != structure_bytes || remaining() + 2 < (structure_bytes & ~1u)) fail();
  }

  // `length` bytes at `offset` from the element's first byte. If there are none, the offset is meaningless.
  Bytes buffer(std::uint64_t offset, std::uint64_t length) {
    if (!ok() || length == 0) return {};
    if (offset < kHeaderBytes || offset > element_.size() || length > element_.size() - offset) {
      fail();
      return {};
    }
    return element_.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
  }

  FileId file_id() {
    FileId id;
    id.persistent_part = u64();
    id.volatile_part = u64();
    return id;
  }

  FileTimes file_times() {
    FileTimes times;
    times.creation = u64();
    times.last_access = u64();
    times.last_write = u64();
    times.change = u64();
    return times;
  }

  std::array<std::byte, 16> id16() { return array<16>(); }

  template <std::size_t size>
  std::array<std::byte, size> array() {
    std::array<std::byte, size> out{};
    const Bytes from = bytes(size);
    std::copy(from.begin(), from.end(), out.begin());
    return out;
  }

  // The parser's result: `record`, if all fields and buffers were valid.
  template <class Record>
  Result<Record> finish(Record&& record) const {
    if (!ok()) return Error::malformed_record;
    return std::forward<Record>(record);
  }

 private:
  Bytes element_;
};

}  // namespace longhaul::smb::smb2
