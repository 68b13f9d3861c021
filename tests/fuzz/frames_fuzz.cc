// SPDX-License-Identifier: Apache-2.0
// Any bytes are frames, the beginning of one, or an error; what was read comes back when it is written, and a
// frame that is cut is incomplete.

#include "fuzz/target.h"
#include "proxy/link/frames.h"

namespace longhaul::fuzz::frames_target {
using namespace longhaul::link;

FUZZ_TARGET(frames) {
  Bytes rest = std::as_bytes(std::span(data, size));
  for (;;) {
    auto parsed = parse_frame(rest);
    // The short way to STREAM frames says the same.
    auto* frame =
        parsed && *parsed && (*parsed)->frame ? std::get_if<StreamFrame>(&*(*parsed)->frame) : nullptr;
    auto stream = parse_stream_frame(rest);
    require(stream.has_value() == (frame != nullptr));
    if (frame)
      require(stream->consumed == (*parsed)->consumed && stream->frame.stream == frame->stream &&
              stream->frame.offset == frame->offset &&
              stream->frame.payload.data() == frame->payload.data() &&
              stream->frame.payload.size() == frame->payload.size());
    if (!parsed || !*parsed) return 0;
    std::size_t consumed = (*parsed)->consumed;
    require(consumed >= 2 && consumed <= rest.size());
    Buffer torn(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(consumed - 1));
    require(parse_frame(torn).has_value() && !parse_frame(torn)->has_value());
    if ((*parsed)->frame) {
      // Numbers may have been longer than necessary, so the bytes may differ the first time, not the second.
      Buffer once, twice;
      write_frame(*(*parsed)->frame, once);
      require(once.size() <= consumed || std::holds_alternative<HelloFrame>(*(*parsed)->frame));
      auto again = parse_frame(once);
      require(again.has_value() && again->has_value() && (*again)->consumed == once.size());
      write_frame(*(*again)->frame, twice);
      require(once == twice);
    }
    rest = rest.subspan(consumed);
  }
}

}  // namespace longhaul::fuzz::frames_target
