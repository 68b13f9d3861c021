// SPDX-License-Identifier: Apache-2.0
// The contents of packets in flight, found by small reusable handles, so that a packet needs no allocation.
#pragma once
#include <optional>
#include <vector>

#include "proxy/link/session.h"
#include "proxy/link/udp/packet_ack.h"

namespace longhaul::link::udp {

struct SentContent {
  std::uint32_t datagram_bytes = 0;
  CarrierId carrier;                // the session's id of this carrier at that time
  bool restored = false;            // the peer has restored the content by error correction
  bool asks_at_once = false;        // the packet has a PROBE
  std::optional<PacketNumber> ack;  // the largest number of its PACKET_ACK
  PacketContent frames;             // the session's content
};

class PacketContents {
 public:
  using Handle = std::uint32_t;

  Handle take() {
    if (free_.empty()) {
      free_.push_back(static_cast<Handle>(contents_.size()));
      contents_.emplace_back();
    }
    Handle handle = free_.back();
    free_.pop_back();
    return handle;
  }
  void give_back(Handle handle) {
    SentContent& content = contents_[handle];
    PacketContent frames = std::move(content.frames);
    frames.clear();
    content = {};
    // Control frames are rare: their memory is not kept with every handle.
    if (frames.control.capacity() == 0) content.frames = std::move(frames);
    free_.push_back(handle);
  }
  SentContent& operator[](Handle handle) { return contents_[handle]; }

 private:
  std::vector<SentContent> contents_;
  std::vector<Handle> free_;
};

}  // namespace longhaul::link::udp
