// SPDX-License-Identifier: Apache-2.0
// Chooses how many repairs follow how many messages of an interactive flow, so that messages arrive in time.
#pragma once
#include <cstdint>

namespace longhaul::fec {

struct Conditions {
  double rate = 0;                // share of packets that the path loses
  double burst = 1;               // mean number of a flow's adjacent packets lost together
  double spacing_seconds = 0;     // of messages
  double deadline_seconds = 0;    // for delivery in order, beyond the one-way delay;
  double late = 0.004;            // this share of messages may exceed it
  double round_trip_seconds = 0;  // also the deadline for 999 of 1000 messages
};

// `repairs` after every `group` messages; zero if retransmission is fast enough.
struct Grouping {
  std::uint32_t group = 1;
  std::uint32_t repairs = 0;
  bool operator==(const Grouping&) const = default;
};

// The grouping with the fewest repairs per message that meets the conditions.
Grouping cheapest_grouping(const Conditions& conditions);

}  // namespace longhaul::fec
