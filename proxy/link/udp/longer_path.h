// SPDX-License-Identifier: Apache-2.0
// Distinguishes a path that became longer from a queue. Both raise the delay of packets, but a queue drains
// when its sender slows down, while a longer path keeps its delay.
#pragma once
#include <chrono>
#include <optional>

#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

// A sudden rise of the delay that the packets sent meanwhile do not explain raises a doubt. Then less is sent
// for some milliseconds, and a round trip later it shows whether that made a difference. If the delay goes on
// rising, the line may be slower, too: then the arrival rate is the line's rate, and less is sent until the
// excess has drained, and slightly longer.
class LongerPath {
 public:
  static constexpr Duration kSmallestRise = std::chrono::milliseconds(8);  // less is jitter

  // The state before the sample.
  struct Known {
    double rate = 0;      // bytes per second of ours that the line delivers; 0: not known yet
    double capacity = 0;  // including the traffic of others; at least `rate`
    double loss = 0;      // share of packets lost at any rate
    bool alone = true;    // there is hardly any other traffic on the line
    Duration usual_rise{0};  // delays rise at once by as much without a reason
    Duration queue{0};
    Duration variation{0};  // the usual difference of delays between consecutive packets
  };
  // For full packets only. Returns true when the path was found to be longer: then only the delay above
  // `least_delay` is a queue.
  bool on_sample(const RateSample& sample, const Known& known);

  // For bytes acknowledged by samples of other packets.
  void on_acked(std::uint64_t bytes) {
    if (doubt_) doubt_->acked_bytes += bytes;
  }

  bool doubts() const { return doubt_.has_value(); }
  // Whether the line may be slower, too: then everything that is sent is part of the measurement.
  bool doubts_rate() const { return doubt_ && doubt_->slower; }
  // How much the delay rose when the doubt began; 0 without a doubt.
  Duration rise() const { return doubt_ ? doubt_->queues.rise : Duration{0}; }
  // The part of the rate that may be sent: less than 1 until the reduction is large enough to make a
  // difference.
  double gain() const { return gain_; }
  // Since the path became longer; valid when on_sample() has returned true.
  Duration least_delay() const { return least_delay_; }
  Duration least_rtt() const { return least_rtt_; }
  // Bytes per second of ours that the longer path delivers, if it has become slower, too.
  std::optional<double> slower_rate() const { return slower_rate_; }

 private:
  struct Packet {
    TimePoint sent_at{};
    std::uint64_t dispatched_bytes = 0;
    Duration delay{0};

    TimePoint arrival() const { return sent_at + delay; }  // by an independent clock
  };
  struct Queues {
    Duration rise{0};    // of the delay: perhaps a queue
    Duration before{0};  // an earlier, certain queue, which may drain
  };
  // The delay rose repeatedly: the line delivers less than before. Queues count from the first late packet
  // on.
  struct Slower {
    TimePoint since{};      // since then less is sent
    TimePoint slow_from{};  // the same, or when the last packet was sent that met an equally long queue
    double rate = 0;        // bytes per second of ours that arrive
    Duration expected{0};   // queue expected from sending too fast
    Duration own{0};        // the same, when the last such packet arrived
    Duration queue{0};      // what is left of it now, if the path is longer
    Duration left_out{0};   // sent less since it drained: any other queue would be shorter by this
    bool paused = false;    // it drained in between, so the arrival rate is no longer the line's rate
  };
  struct Doubt {
    TimePoint began{};  // packets sent before were not sent slowly
    Known known{};      // before the doubt began
    Packet since;       // the first late packet
    Duration since_rtt{0};
    double unseen_bytes = 0;  // sent between it and the last packet that was not late
    Duration unseen_time{0};
    unsigned rises = 1;             // in quick succession
    std::uint64_t acked_bytes = 0;  // since then
    Queues queues;
    Duration enough{0};  // the reduction that would show in a queue
    TimePoint slow_until{};
    TimePoint ends{};  // without a result until then, the rise counts as a queue
    bool drained = false;
    Duration least_left_out{0};  // negative while more was sent than the line delivers
    std::optional<Slower> slower{};
  };

  // The rise between consecutive packets, if it is large and sudden.
  static Duration rise_between(const Packet& before, const Packet& packet, const Known& known);
  void begin(const Packet& packet, const RateSample& sample, const Queues& queues, const Known& known);
  // The delay rose in more than one step.
  void begin_again(const Packet& packet, const RateSample& sample, const Known& known);
  bool examine(const Packet& packet, const RateSample& sample, const Known& known);
  void begin_slower(const Packet& packet, const RateSample& sample);
  bool examine_slower(const Packet& packet, const RateSample& sample, const Known& known);
  bool on_sent_too_fast(const Packet& packet, const RateSample& sample, Duration grown, const Known& known);
  void expect_own(Duration queue, const RateSample& sample);
  Duration may_drain() const;
  Duration growth(const Packet& packet) const;
  double arrival_rate(const Packet& packet) const;
  void set_gain(const RateSample& sample, const Known& known);

  std::optional<Packet> last_;
  std::optional<Doubt> doubt_;
  double gain_ = 1;
  Duration least_delay_{0}, least_rtt_{0};
  std::optional<double> slower_rate_;
};

}  // namespace longhaul::link::udp
