// SPDX-License-Identifier: Apache-2.0
// The session's content of one packet, stored so that it can be sent again if the packet is lost.
#pragma once
#include <vector>

#include "codecs/byte_writer.h"
#include "proxy/link/stream_range.h"

namespace longhaul::link {

struct PacketContent {
  struct Range {
    StreamId stream;
    StreamRange bytes;
  };
  std::vector<Range> ranges;  // of streams, whose bytes are stored in the session
  Buffer control;             // other frames; repeating them is harmless (PROTOCOL.md, section 3)

  bool empty() const { return ranges.empty() && control.empty(); }
  void clear() {
    ranges.clear();
    control.clear();
  }
};

}  // namespace longhaul::link
