// SPDX-License-Identifier: Apache-2.0
// One simulated run each: bulk for a while, a download of a size, messages beside bulk, flows side by side.
// Leaves which lines, how often and what goal to main.cc. A wrong byte ends the program.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tests/proxy/link/udp/simulated_udp_pair.h"
#include "tests/simulator/distribution.h"

namespace longhaul::bench {

using simulator::Duration;
using simulator::TimePoint;
using namespace std::chrono_literals;

// Payload bytes in a full packet of 1500 IP bytes: 28 of IP and UDP, 29 of packet header and tag, 12 of
// STREAM frame.
inline constexpr double kPayloadShare = 1431.0 / 1500;

inline double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

// What the sender knows of the line.
enum class Knows : std::uint8_t { rate, path, nothing };

struct Run {
  simulator::LineConfig line{};
  Knows knows = Knows::rate;
  std::uint64_t configured_bits = 0;  // with Knows::rate; 0: the line's
  config::Fec fec{};
  std::uint64_t seed = 1;
  Duration warm_up = 3s;
  Duration time = 20s;
  unsigned streams = 1;
  // The line moves for `moves`, then stands still for `stands` and keeps what comes; 0: it always moves.
  Duration moves = 500ms, stands{0};
};

struct BulkResult {
  double goodput_bits = 0;
  double rtt_ms = 0;           // at the end, as the carrier sees it
  double queue_ms_median = 0;  // what a packet waited at the line
  double queue_ms_p99 = 0;
  double sent_per_byte = 0;  // IP bytes sent for each payload byte delivered
  double lost_share = 0;     // of packets, at the line
  std::uint64_t repairs = 0;
  double wall_seconds = 0;
};
BulkResult bulk(const Run& run);

// From the flow's opening to its last byte, on carriers that are up and idle.
double download_seconds(const Run& run, std::uint64_t bytes);

// An application in lock step, as SMB1 is: each block is asked for when the one before it has come; the
// question takes what a small packet takes. Seconds for all of them.
double blocks_seconds(const Run& run, std::uint64_t block_bytes, unsigned blocks);

struct MessageResult {
  simulator::Distribution delay_ms;  // from written to readable in order
  double bulk_bits = 0;
};
// 200 bytes every 20 ms from b to a; with bulk in the same direction if `beside_bulk`.
MessageResult messages(const Run& run, bool beside_bulk);

struct ShareResult {
  double first_bits = 0, second_bits = 0;
};
ShareResult two_pairs(const Run& run);
ShareResult beside_cubic(const Run& run);  // the second is CUBIC's

double cubic_alone(const Run& run);
double cubic_download_seconds(const Run& run, std::uint64_t bytes);  // by the bare line

}  // namespace longhaul::bench
