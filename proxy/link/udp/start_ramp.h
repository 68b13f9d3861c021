// SPDX-License-Identifier: Apache-2.0
// The start of a law that measures: a train of packets whose distances at the receiver indicate the line's
// rate, then a few round trips in which that is believed more and more. Sending is left to the law.
#pragma once
#include <optional>

#include "proxy/link/udp/line_watch.h"
#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

class StartRamp {
 public:
  static constexpr double kTrainPackets = 32;
  static constexpr Duration kTrainTime = std::chrono::milliseconds(2);  // in which they are sent

  explicit StartRamp(std::uint32_t packet_bytes) : packet_bytes_(packet_bytes) {}

  enum class Next : std::uint8_t {
    stay,
    ramp,    // another round trip at `rate`
    drain,   // `rate` is the line's: the queue drains
    search,  // the same, and more is tried right after that
    cruise,  // `rate` is what the train indicated, or the most that is allowed
  };
  struct Step {
    Next next = Next::stay;
    double rate = 0;                   // bytes per second
    std::optional<double> capacity{};  // of the line, if the train has shown it
  };
  // What surrounds a sample. `span`: the law's unit of time; `loss`: share lost so far; `most`: bytes per
  // second that are allowed; `line`: what is believed now.
  struct Around {
    const LineWatch& watch;
    Duration span;
    double loss;
    double line;
    double most;
    double train = kTrainPackets;  // so many were sent at once
  };
  Step on_train(const RateSample& sample, const Around& around);
  // `carried`: the rate at which the line took what was sent.
  Step on_ramp(const RateSample& sample, std::optional<double> carried, const Around& around);

 private:
  double packets(double count) const { return count * packet_bytes_; }
  void note(const RateSample& sample, std::optional<double> carried);

  std::uint32_t packet_bytes_;
  std::optional<double> train_;  // what the first packets' distances indicate
  std::uint64_t round_ = 0;
  unsigned flat_rounds_ = 0;
  double previous_rate_ = 0;  // of the round before this one
  double best_ = 0, arrived_ = 0;
  double previous_best_ = 0;  // of the round before this one
  double loss_ = 0.1;  // share lost before the present round
  std::int64_t acked_ = 0, lost_ = 0;
};

}  // namespace longhaul::link::udp
