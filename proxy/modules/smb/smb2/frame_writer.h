// SPDX-License-Identifier: Apache-2.0
// A frame while it is built, with its head of four bytes. build_*.cc write its fields.
#pragma once
#include <algorithm>

#include "codecs/little_endian.h"
#include "codecs/slice.h"
#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/smb2/header.h"

namespace longhaul::smb::smb2 {

struct FrameBuffer {
  Buffer buffer_;
};

// The four bytes of the head are filled in at the end.
class FrameWriter : private FrameBuffer, public LittleEndianWriter {
 public:
  explicit FrameWriter(const Header& header) : LittleEndianWriter(buffer_) {
    buffer_.reserve(kFrameHeadBytes + kHeaderBytes + 128);
    buffer_.resize(kFrameHeadBytes);
    write_header(header, buffer_);
  }
  // Counted from the element's first byte.
  std::size_t offset() const { return buffer_.size() - kFrameHeadBytes; }
  void file_id(const FileId& id) {
    u64(id.persistent_part);
    u64(id.volatile_part);
  }
  void align8() { zeros((8 - offset() % 8) % 8); }
  // `behind`: bytes that follow outside of this frame's memory but belong to it.
  Slice finish(std::size_t behind = 0) {
    write_frame_head(offset() + behind, buffer_.data());
    return Slice::copy_of(buffer_);
  }
  // With `front` replacing as many bytes from the element's start.
  Slice finish_behind(Bytes front) {
    std::copy(front.begin(), front.end(), buffer_.begin() + kFrameHeadBytes);
    return finish();
  }
  Slice finish_with(Bytes tail) {
    write_frame_head(offset() + tail.size(), buffer_.data());
    return Slice::joined(buffer_, tail);
  }
};

}  // namespace longhaul::smb::smb2
