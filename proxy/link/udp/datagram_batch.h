// SPDX-License-Identifier: Apache-2.0
// Datagrams for one address that are sent in one system call: all of one size except the last, which may be
// smaller (UDP generic segmentation offload, Linux 4.18).
#pragma once
#include "codecs/byte_writer.h"
#include "proxy/link/endpoint.h"

namespace longhaul::link::udp {

struct DatagramBatch {
  // Limit of one send: the kernel's limits are 64 segments (UDP_MAX_SEGMENTS) and one IP packet's length.
  static constexpr std::size_t kMaxSegments = 64;
  static constexpr std::size_t kMaxBytes = 64'000;

  UdpAddress to;
  Buffer bytes;
  std::size_t segment_bytes = 0;  // the size of every datagram except the last
  bool one_by_one = false;        // the path drops packets that are sent together

  std::size_t segments() const {
    return segment_bytes ? (bytes.size() + segment_bytes - 1) / segment_bytes : 0;
  }
  void clear() {
    bytes.clear();
    segment_bytes = 0;
  }
};

}  // namespace longhaul::link::udp
