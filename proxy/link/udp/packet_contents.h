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
  CarrierId carrier;                // the session's number for us at that time
  bool restored = false;            // the peer has the content without the packet
  bool asks_at_once = false;        // with a PROBE in it
  std::optional<PacketNumber> ack;  // the largest number of the PACKET_ACK in it
  PacketContent frames;             // of the session
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
    // Control frames are rare: their memory does not stay with every handle.
    if (frames.control.capacity() == 0) content.frames = std::move(frames);
    free_.push_back(handle);
  }
  SentContent& operator[](Handle handle) { return contents_[handle]; }

 private:
  std::vector<SentContent> contents_;
  std::vector<Handle> free_;
};

}  // namespace longhaul::link::udp
