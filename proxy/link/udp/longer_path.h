// SPDX-License-Identifier: Apache-2.0
// Tells a path that became longer from a queue. Both raise the delay of packets, but a queue drains when its
// sender slows down, and a path does not get shorter.
#pragma once
#include <chrono>
#include <optional>

#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

// A rise that comes at once, and that the packets sent meanwhile do not explain, is a reason for doubt. Then
// for some milliseconds less is sent, and a round trip later it is seen whether that made a difference. If
// the delay goes on rising, the line may be slower, too: then what arrives is its rate, and less than that is
// sent until what was sent too fast has drained, and a little more.
class LongerPath {
 public:
  static constexpr Duration kSmallestRise = std::chrono::milliseconds(8);  // less is jitter

  // Before the sample.
  struct Known {
    double rate = 0;      // bytes per second of ours that the line carries; 0: not known yet
    double capacity = 0;  // with what it carries of others; at least `rate`
    double loss = 0;      // share of packets that is lost whatever the rate
    bool alone = true;    // hardly anything else is on the line
    Duration base_rtt{0};
    Duration queue{0};
    Duration variation{0};  // the usual difference of delays from one packet to the next
  };
  // Of full packets only.
  // Returns true when the path has been found to be longer: what is above `least_delay` is the queue then.
  bool on_sample(const RateSample& sample, const Known& known);

  // Acknowledged by samples of other packets.
  void on_acked(std::uint64_t bytes) {
    if (doubt_) doubt_->acked_bytes += bytes;
  }

  bool doubts() const { return doubt_.has_value(); }
  // The line may be slower, too: all that is sent is part of the measurement.
  bool doubts_rate() const { return doubt_ && doubt_->slower; }
  // By how much the delay rose when the doubt began; 0 without one.
  Duration rise() const { return doubt_ ? doubt_->queues.rise : Duration{0}; }
  // What part of the rate may be sent: less until enough was left out to make a difference.
  double gain() const { return gain_; }
  // Since the path is longer, valid when on_sample() has returned true.
  Duration least_delay() const { return least_delay_; }
  Duration least_rtt() const { return least_rtt_; }
  // Bytes per second of ours that the longer path carries, if it has become slower, too.
  std::optional<double> slower_rate() const { return slower_rate_; }

 private:
  struct Packet {
    TimePoint sent_at{};
    std::uint64_t dispatched_bytes = 0;
    Duration delay{0};

    TimePoint arrival() const { return sent_at + delay; }  // by a clock of its own
  };
  struct Queues {
    Duration rise{0};    // of the delay: the queue that may be none
    Duration before{0};  // one that certainly was there, and may leave
  };
  // The delay rose on and on: the line carries less than before. Queues count from the first late packet on.
  struct Slower {
    TimePoint since{};      // from then on less was sent
    TimePoint slow_from{};  // the same, or when the last packet left that found as long a queue
    double rate = 0;        // bytes per second of ours that arrive
    Duration expected{0};   // of what was sent too fast
    Duration own{0};        // the same, when the last such packet arrived
    Duration queue{0};      // what is left of it now, if the path is longer
    Duration left_out{0};   // since it had drained: any other queue would be shorter by this
    bool paused = false;    // it drained in between, so arrivals no longer show the line's rate
  };
  struct Doubt {
    TimePoint began{};  // what was sent before was not sent slowly
    Known known{};      // before it began
    Packet since;       // the first packet that came late
    Duration since_rtt{0};
    double unseen_bytes = 0;  // sent between it and the last one that was not late
    Duration unseen_time{0};
    unsigned rises = 1;             // one soon after the other
    std::uint64_t acked_bytes = 0;  // since then
    Queues queues;
    Duration enough{0};  // a queue would be shorter by this for what is left out
    TimePoint slow_until{};
    TimePoint ends{};  // unanswered: it is taken for a queue
    bool drained = false;
    Duration least_left_out{0};  // negative while more was sent than the line carries
    std::optional<Slower> slower{};
  };

  // From one packet to the next, if that is much and sudden.
  static Duration rise_between(const Packet& before, const Packet& packet, const Known& known);
  void begin(const Packet& packet, const RateSample& sample, const Queues& queues, const Known& known);
  // It rose in more than one step.
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
