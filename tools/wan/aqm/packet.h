// SPDX-License-Identifier: Apache-2.0
// A packet that waits at the line, with what the dice said when it came. Leaves its bytes to the owner of the
// id.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>

namespace longhaul::wan {

using Duration = std::chrono::nanoseconds;
using TimePoint =
    std::chrono::time_point<std::chrono::steady_clock, Duration>;  // a type only: nothing here reads it
using PacketId = std::uint32_t;

// What the IP header of a packet says about congestion (RFC 3168).
enum class Ecn : std::uint8_t { not_capable, capable, experienced };

struct QueuedPacket {
  std::uint64_t number = 0;  // order of arrival
  PacketId id = 0;
  std::uint32_t bytes = 0;
  std::uint64_t flow = 0;  // packets of one flow have the same
  Ecn ecn = Ecn::not_capable;
  TimePoint arrived{};
  double jitter_share = 0;  // -1 to 1
  bool lost = false;
  bool held_back = false;
  bool twice = false;
  std::optional<double> flipped_at{};
};

}  // namespace longhaul::wan
