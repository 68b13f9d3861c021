// SPDX-License-Identifier: Apache-2.0
// Tells a path that became longer from a queue. Both raise the delay of packets, but a queue drains when its
// sender slows down, and a path does not get shorter.
#pragma once
#include <algorithm>
#include <chrono>
#include <optional>

#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

// A rise that comes at once, and that the packets sent meanwhile do not explain, is a reason for doubt. Then for
// some milliseconds less is sent, and a round trip later it is seen whether that made a difference.
class LongerPath {
 public:
  static constexpr Duration kSmallestRise = std::chrono::milliseconds(8);  // less is jitter

  // Before the sample.
  struct Known {
    double rate = 0;      // bytes per second of ours that the line carries; 0: not known yet
    double capacity = 0;  // with what it carries of others; at least `rate`
    Duration base_rtt{0};
    Duration queue{0};
    Duration variation{0};  // the usual difference of delays from one packet to the next
  };
  // Of full packets only.
  // Returns true when the path has been found to be longer: what is above `least_delay` is the queue then.
  bool on_sample(const RateSample& sample, const Known& known) {
    if (!sample.forward_delay || !sample.rtt) return false;
    const Packet packet{sample.sent_at, sample.dispatched_bytes, *sample.forward_delay};
    bool longer = false;
    if (known.rate <= 0)
      doubt_.reset();
    else if (doubt_)
      longer = examine(packet, sample, known);
    else if (last_)
      compare(*last_, packet, sample, known);
    last_ = packet;
    slow_ = doubt_ && sample.now < doubt_->slow_until;
    return longer;
  }

  bool doubts() const { return doubt_.has_value(); }
  // By how much the delay rose when the doubt began; 0 without one.
  Duration rise() const { return doubt_ ? doubt_->queues.rise : Duration{0}; }
  // What part of the rate may be sent: less until enough was left out to make a difference.
  double gain() const { return slow_ ? kSlow : 1; }
  // Since the path is longer, valid when on_sample() has returned true.
  Duration least_delay() const { return least_delay_; }
  Duration least_rtt() const { return least_rtt_; }

 private:
  struct Packet {
    TimePoint sent_at{};
    std::uint64_t dispatched_bytes = 0;
    Duration delay{0};
  };
  struct Queues {
    Duration rise{0};    // of the delay: the queue that may be none
    Duration before{0};  // one that certainly was there, and may leave
  };
  struct Doubt {
    Packet since;              // the first packet that came late
    Queues queues;
    Duration enough{0};        // a queue would be shorter by this for what is left out
    TimePoint slow_until{};
    TimePoint ends{};          // unanswered: it is taken for a queue
    bool drained = false;
    Duration least_left_out{0};  // negative while more was sent than the line carries
  };

  static constexpr double kSlow = 0.5;
  static constexpr Duration kMostLeftOut = std::chrono::milliseconds(25);

  static Duration time_of(double bytes, double rate) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(bytes / rate));
  }

  void compare(const Packet& before, const Packet& packet, const RateSample& sample, const Known& known) {
    const Duration rise = packet.delay - before.delay;
    if (rise < std::max({kSmallestRise, known.base_rtt / 16, 4 * known.variation})) return;
    const auto between = static_cast<double>(packet.dispatched_bytes - before.dispatched_bytes);
    if (time_of(between, known.rate) > rise / 2) return;
    begin(packet, sample, {.rise = rise, .before = known.queue}, known);
  }

  void begin(const Packet& packet, const RateSample& sample, const Queues& queues, const Known& known) {
    const Duration enough = std::clamp(queues.rise / 2, kSmallestRise, kMostLeftOut) + 3 * known.variation;
    const double our_share = known.rate / known.capacity;
    const Duration slow = std::chrono::duration_cast<Duration>(enough / (1 - kSlow) / our_share);
    least_delay_ = packet.delay;
    least_rtt_ = *sample.rtt;
    doubt_ = {.since = packet,
              .queues = queues,
              .enough = enough,
              .slow_until = sample.now + 5 * slow / 4,
              .ends = sample.now + 4 * *sample.rtt + 4 * slow};
  }

  bool examine(const Packet& packet, const RateSample& sample, const Known& known) {
    least_delay_ = std::min(least_delay_, packet.delay);
    least_rtt_ = std::min(least_rtt_, *sample.rtt);
    Doubt& doubt = *doubt_;
    if (doubt.drained) {  // so it was a queue; packets that were sent slowly still arrive
      if (packet.sent_at >= doubt.slow_until) doubt_.reset();
      return false;
    }
    const Duration fell = doubt.since.delay - packet.delay;
    // It still grows, or nobody can tell.
    if (-fell > std::max(doubt.enough, doubt.queues.rise / 2) || sample.now > doubt.ends) {
      doubt_.reset();
      return false;
    }
    const auto since = static_cast<double>(packet.dispatched_bytes - doubt.since.dispatched_bytes);
    const double expected = known.rate * seconds(packet.sent_at - doubt.since.sent_at);
    const Duration left_out = time_of(expected - since, known.capacity);
    doubt.least_left_out = std::min(doubt.least_left_out, left_out);
    const Duration fell_of_rise = fell - doubt.queues.before;
    const Duration drained = left_out - doubt.least_left_out;  // if it was a queue
    if (drained < doubt.enough || (fell_of_rise > drained / 4 && fell_of_rise < drained / 2)) return false;
    if (fell_of_rise <= drained / 4) {
      doubt_.reset();
      return true;
    }
    doubt.drained = true;
    doubt.slow_until = std::min(doubt.slow_until, sample.now);
    return false;
  }

  std::optional<Packet> last_;
  std::optional<Doubt> doubt_;
  bool slow_ = false;
  Duration least_delay_{0}, least_rtt_{0};
};

}  // namespace longhaul::link::udp
