// SPDX-License-Identifier: Apache-2.0
// Chooses how many repairs follow how many messages of an interactive flow, so that messages are in time.
#pragma once
#include <cstdint>

namespace longhaul::fec {

struct Conditions {
  double rate = 0;                // of packets that the path erases
  double burst = 1;               // how many of a flow's packets in a row an erasure hits
  double spacing_seconds = 0;     // of messages
  double deadline_seconds = 0;    // in order, beyond the one-way delay,
  double late = 0.004;            // but for this share of messages,
  double round_trip_seconds = 0;  // and this for 999 of 1000
};

// `repairs` after every `group` messages; no repairs: retransmission is soon enough.
struct Grouping {
  std::uint32_t group = 1;
  std::uint32_t repairs = 0;
  bool operator==(const Grouping&) const = default;
};

// The one with the fewest repairs per message.
Grouping cheapest_grouping(const Conditions& conditions);

}  // namespace longhaul::fec
