// SPDX-License-Identifier: Apache-2.0
// Chooses UDP or TCP if the feature `transport` leaves a choice: facts in, a verdict with its reason out.
// path_health.h decides whether UDP works, path_choice.h which of several lines carries.
#pragma once
#include "proxy/config/features.h"
#include "proxy/link/types.h"

namespace longhaul::link::udp {

struct TransportFacts {
  config::Transport transport = config::Transport::automatic;
  bool tcp_is_there = false;  // the control connection
  bool udp_works = false;     // on at least one line
  bool udp_sends = false;     // UDP is in use
  // Of the only line, if its rate is not configured: the minimum over a minute, because delays caused by TCP
  // itself are not part of the line's length.
  std::optional<Duration> measured_line_rtt{};
};

struct TransportVerdict {
  bool udp = false;
  const char* reason = nullptr;  // null: UDP works, or became silent
};

// On a line with a very short round trip TCP repairs a loss before it is noticed, and costs half as much:
// `auto` uses TCP there. Before a line in use is left, its round trip must be clearly shorter.
inline constexpr Duration kShortLine = std::chrono::milliseconds(2);
inline constexpr Duration kClearlyShort = std::chrono::microseconds(1500);

inline TransportVerdict choose_transport(const TransportFacts& facts) {
  if (!facts.udp_works) return {};
  const bool tcp_wished = facts.transport == config::Transport::tcp;
  if (!facts.tcp_is_there) return {true, tcp_wished ? "the TCP connection was lost" : nullptr};
  if (tcp_wished) return {false, "transport = tcp is configured"};
  const bool is_short = facts.transport == config::Transport::automatic && facts.measured_line_rtt &&
                        *facts.measured_line_rtt < (facts.udp_sends ? kClearlyShort : kShortLine);
  if (is_short) return {false, "low round-trip time: TCP is as fast and needs less CPU"};
  return {true, nullptr};
}

}  // namespace longhaul::link::udp
