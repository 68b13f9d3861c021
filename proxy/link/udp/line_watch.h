// SPDX-License-Identifier: Apache-2.0
// Estimates queueing delay and base delay of the line from forward delays and round trips.
#pragma once
#include <algorithm>
#include <chrono>

#include "proxy/link/udp/base_delay.h"
#include "proxy/link/udp/longer_path.h"
#include "proxy/link/udp/rate_law.h"
#include "proxy/link/udp/recent_delay.h"
#include "proxy/link/udp/usual_pause.h"

namespace longhaul::link::udp {

class LineWatch {
 public:
  explicit LineWatch(Duration initial_rtt) : initial_rtt_(initial_rtt) {}

  // What the law knows of the line.
  struct Carries {
    double rate = 0;      // bytes per second of ours; 0: not known yet
    double capacity = 0;  // at all
    double loss = 0;      // share of packets that is lost whatever the rate
    bool alone = false;   // hardly anything else is on the line
  };
  void on_sample(const RateSample& sample, const Carries& line) {
    became_longer_ = false;
    // On a slow line a full packet takes many times as long as a small one, which is not a queue. So full
    // ones are compared with full ones; before there is one only the line's length is known.
    if (!is_full(sample)) {
      longer_.on_acked(sample.acked_bytes);
      if (sample.rtt) small_rtt_.add(sample.now, *sample.rtt);
      return;
    }
    if (sample.full_packet_bytes != full_packet_bytes_) {
      full_packet_bytes_ = sample.full_packet_bytes;
      rtt_ = Delays{};
      forward_ = Delays{};
    }
    became_longer_ = longer_.on_sample(sample, {.rate = line.rate,
                                                .capacity = line.capacity,
                                                .loss = line.loss,
                                                .alone = line.alone,
                                                .usual_rise = usual_rise(),
                                                .queue = queue(),
                                                .variation = variation()});
    if (became_longer_) {
      rtt_.base.restart(sample.now, longer_.least_rtt());
      forward_.base.restart(sample.now, longer_.least_delay());
    }
    if (sample.rtt) rtt_.add(sample.now, lag(), *sample.rtt);
    if (sample.forward_delay) {
      forward_.add(sample.now, lag(), *sample.forward_delay);
      pauses_.add(sample.now, *sample.forward_delay);
    }
  }

  // Only such packets indicate a queue. Repairs need a little room in a packet of data.
  static bool is_full(const RateSample& sample) {
    return std::uint64_t{sample.packet_bytes} * 16 >= std::uint64_t{sample.full_packet_bytes} * 15;
  }

  bool measured() const { return rtt_.base.value().has_value() || small_rtt_.value().has_value(); }
  // Without queue, as far as was seen within the last seconds.
  Duration base_rtt() const { return rtt_.base.value().value_or(small_rtt_.value().value_or(initial_rtt_)); }
  // The current queue, as time. A queue in the reverse direction shows only in the round trip, clock drift
  // only in the forward delay.
  Duration queue() const { return std::min(rtt_.above_base(), forward_.above_base()); }
  // The delay has risen, and it is not known yet whether a queue or a longer path is the reason.
  bool doubts() const { return longer_.doubts(); }
  bool doubts_rate() const { return longer_.doubts_rate(); }
  // The latest sample showed that the path is longer than before: what was taken for a queue is none.
  bool became_longer() const { return became_longer_; }
  // And slower: bytes per second of ours that it carries now.
  std::optional<double> slower_rate() const { return became_longer_ ? longer_.slower_rate() : std::nullopt; }
  // What part of its rate a law may send now, because it wants to know.
  double gain() const { return longer_.gain(); }
  // base_rtt(), with what may have been added on the way there, and with what was added on the way back, if
  // that is much: a longer path or a queue, but no queue of ours.
  Duration longest_base_rtt() const {
    const Duration back = rtt_.above_base() - forward_.above_base();
    return base_rtt() + longer_.rise() + (back > base_rtt() + kLongWhile / 2 ? back : Duration{0});
  }
  // The queue that acknowledgements wait in, on the way back.
  Duration queue_back() const {
    return std::max<Duration>(rtt_.above_base() - forward_.above_base(), Duration{0});
  }
  // The mean difference of delays from one packet to the next: random delays of hosts and lines.
  Duration variation() const { return forward_.recent.variation(); }
  // How long the line pauses again and again; 0 if it does not.
  Duration usual_pause() const { return pauses_.value(); }
  // A growing queue is detected this much later.
  Duration lag() const { return std::clamp<Duration>(base_rtt() / 4, RecentDelay::kShortWhile, kLongWhile); }

 private:
  // The laws tolerate so much queue, and a pause of the line does not make the path longer.
  Duration usual_rise() const { return std::max<Duration>(base_rtt() / 16, 2 * usual_pause()); }

  static constexpr Duration kLongWhile = std::chrono::milliseconds(50);

  struct Delays {
    BaseDelay base;
    RecentDelay recent;

    void add(TimePoint now, Duration short_while, Duration value) {
      base.add(now, value);
      recent.add(now, short_while, value);
    }
    Duration above_base() const { return recent.above(base.value()); }
  };

  Duration initial_rtt_;
  std::uint32_t full_packet_bytes_ = 0;
  Delays rtt_, forward_;  // of full packets
  BaseDelay small_rtt_;   // of the others
  LongerPath longer_;
  UsualPause pauses_;
  bool became_longer_ = false;
};

}  // namespace longhaul::link::udp
