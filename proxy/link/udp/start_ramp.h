// SPDX-License-Identifier: Apache-2.0
// The start of MeasuredLaw: a train of packets whose distances at the receiver indicate the line's rate, then
// a few round trips that approach this rate. The law does the sending.
#pragma once
#include <optional>

#include "proxy/link/udp/line_watch.h"
#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

class StartRamp {
 public:
  static constexpr double kTrainPackets = 32;
  static constexpr Duration kTrainTime = std::chrono::milliseconds(2);  // in which the train is sent

  explicit StartRamp(std::uint32_t packet_bytes) : packet_bytes_(packet_bytes) {}

  // Bytes per second of the train.
  static double train_rate(std::uint32_t packet_bytes) {
    return kTrainPackets * packet_bytes / seconds(kTrainTime);
  }

  enum class Next : std::uint8_t {
    stay,
    ramp,    // another round trip at `rate`
    drain,   // `rate` is the line's rate: the queue drains
    search,  // the same, and a higher rate is tested right afterwards
    cruise,  // `rate` is what the train indicated, or the limit
  };
  struct Step {
    Next next = Next::stay;
    double rate = 0;                   // bytes per second
    std::optional<double> capacity{};  // of the line, if the train has measured it
  };
  // The context of a sample. `span`: the law's unit of time; `loss`: share lost so far; `most`: limit, bytes
  // per second; `line`: current estimate.
  struct Around {
    const LineWatch& watch;
    Duration span;
    double loss;
    double line;
    double most;
    double train = kTrainPackets;  // packets in the train
  };
  Step on_train(const RateSample& sample, const Around& around);
  // `carried`: the rate at which the line delivered.
  Step on_ramp(const RateSample& sample, std::optional<double> carried, const Around& around);

 private:
  double packets(double count) const { return count * packet_bytes_; }
  void note(const RateSample& sample, std::optional<double> carried);

  std::uint32_t packet_bytes_;
  std::optional<double> train_;  // indicated by the distances of the first packets
  std::uint64_t round_ = 0;
  unsigned flat_rounds_ = 0;
  double previous_rate_ = 0;  // of the previous round
  double best_ = 0, arrived_ = 0;
  double previous_best_ = 0;  // of the previous round
  double loss_ = 0.1;         // share lost before this round
  std::int64_t acked_ = 0, lost_ = 0;
};

}  // namespace longhaul::link::udp
