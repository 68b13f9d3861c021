// SPDX-License-Identifier: Apache-2.0
// Datagrams sent at one end of a rig and counted at the other, with the kernel's stamps. Leaves what the
// counts should be to calibrate.h.
#pragma once
#include <chrono>
#include <cstdint>

#include "tools/wan/calibrate/rig.h"

namespace longhaul::wan {

struct Flow {
  double rate_bits = 1e6;             // IP bits per second offered
  std::uint32_t packet_bytes = 1500;  // IP bytes of each packet
  std::uint64_t packets = 0;          // ends after as many; 0: by time alone
  std::chrono::nanoseconds duration{std::chrono::hours{1}};
  std::chrono::nanoseconds settle{
      0};  // arrivals before this much time has passed since the first do not count
  std::chrono::nanoseconds quiet{
      0};  // after the last was sent, the receiver waits until as long nothing came
  bool ipv6 = false;
};

struct Received {
  std::uint64_t sent = 0;     // packets
  std::uint64_t packets = 0;  // after settling
  std::uint64_t all_packets = 0;
  std::chrono::nanoseconds span{0};  // from the first to the last counted arrival
  // The first packet opens the interval and is not part of what it carried.
  double rate_bits(std::uint32_t packet_bytes) const;
};

// From the left host to the right one.
Received send_and_count(const Rig& rig, const Flow& flow);

}  // namespace longhaul::wan
