// SPDX-License-Identifier: Apache-2.0
// Current rates: the mean over the last seconds, from counters that are sampled once a second. Pure.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "proxy/flows/flow_table.h"

namespace longhaul::control {

class RecentRates {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::size_t kSamples = 6;  // five seconds between the first and the last

  struct Link {
    std::uint64_t sent = 0, received = 0;  // counters: bytes; rates: bits per second
    bool operator==(const Link&) const = default;
  };
  struct Sample {
    TimePoint at;
    flows::FlowBytes flows;
    std::map<std::string, Link> links;  // by peer
  };

  void add(Sample sample);
  // In bits per second; nullopt before the second sample, or if the counters were reset meanwhile.
  std::optional<flows::FlowBytes> flows() const;
  std::optional<Link> link(const std::string& peer) const;

 private:
  std::deque<Sample> samples_;
};

}  // namespace longhaul::control
