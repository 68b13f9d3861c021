// SPDX-License-Identifier: Apache-2.0
// Traffic of the last hour: sums of ended flows by client, server, port and peer. Bounded: if there are too
// many names, the smallest are omitted.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "proxy/flows/flow_table.h"

namespace longhaul::flows {

enum class TalkersBy : std::uint8_t { client, server, port, peer };

std::string talker_name(const FlowRecord& flow, TalkersBy by);

class RecentTalkers {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // An interval is dropped as a whole, so the sums cover the last hour and up to ten minutes more.
  static constexpr std::chrono::minutes kInterval{10};
  static constexpr std::size_t kIntervals = 7;
  static constexpr std::size_t kNames = 512;  // per interval and TalkersBy

  struct Sum {
    std::uint64_t flows = 0;
    FlowBytes bytes;
    std::uint64_t lan() const { return bytes.lan_in + bytes.lan_out; }
  };
  using Sums = std::map<std::string, Sum>;

  void add(const FlowRecord& ended, TimePoint now);
  // A snapshot.
  Sums by(TalkersBy by, TimePoint now) const;

 private:
  struct Names {
    Sums sums;
    std::uint64_t least = 0;  // no sum is smaller
  };
  struct Interval {
    TimePoint begin;
    std::array<Names, 4> names;
  };

  static void add_to(Names& names, std::string name, const FlowBytes& bytes);

  std::deque<Interval> intervals_;  // oldest first
};

}  // namespace longhaul::flows
