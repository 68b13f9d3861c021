// SPDX-License-Identifier: Apache-2.0
// Splits the input of a byte carrier into frames. Frames are parsed in place; only a frame that is split
// between two pieces is copied.
#pragma once
#include <algorithm>

#include "proxy/link/frames.h"

namespace longhaul::link {

class FrameAssembler {
 public:
  // Calls `take(const Frame&) -> Result<void>` for every complete frame; a STREAM frame goes to `take(const
  // StreamFrame&)` if there is one. Frames of unknown types are skipped. After an error the rest cannot be
  // parsed.
  template <class Take>
  Result<void> feed(Bytes bytes, Take&& take) {
    while (!partial_.empty() && !bytes.empty()) {
      auto size = frame_size(partial_);
      if (!size) return size.error();
      // The length field is incomplete, or the body is.
      std::size_t missing = *size ? **size - partial_.size() : 1;
      Bytes piece = bytes.first(std::min(missing, bytes.size()));
      bytes = bytes.subspan(piece.size());
      append(partial_, piece);
      if (!*size || piece.size() < missing) continue;
      auto taken = take_frames(partial_, take);
      if (!taken) return taken.error();
      partial_.clear();
    }
    auto rest = take_frames(bytes, take);
    if (!rest) return rest.error();
    append(partial_, *rest);
    return {};
  }

 private:
  // Returns the bytes after the last whole frame.
  template <class Take>
  static Result<Bytes> take_frames(Bytes bytes, Take& take) {
    while (!bytes.empty()) {
      if (auto stream = parse_stream_frame(bytes)) {
        if (Result<void> taken = take(stream->frame); !taken) return taken.error();
        bytes = bytes.subspan(stream->consumed);
        continue;
      }
      auto parsed = parse_frame(bytes);
      if (!parsed) return parsed.error();
      if (!*parsed) break;
      if ((*parsed)->frame)
        if (Result<void> taken = take(*(*parsed)->frame); !taken) return taken.error();
      bytes = bytes.subspan((*parsed)->consumed);
    }
    return bytes;
  }

  Buffer partial_;  // the beginning of an incomplete frame
};

}  // namespace longhaul::link
