// SPDX-License-Identifier: Apache-2.0
// Estimates queueing delay and base delay of the line from forward delays and round trips.
#pragma once
#include <algorithm>
#include <chrono>
#include <optional>

#include "proxy/link/udp/rate_law.h"
#include "proxy/link/udp/windowed.h"

namespace longhaul::link::udp {

class LineWatch {
 public:
  explicit LineWatch(Duration initial_rtt) : initial_rtt_(initial_rtt) {}

  void on_sample(const RateSample& sample) {
    // On a slow line a full packet takes many times as long as a small one, which is not a queue. So full
    // ones are compared with full ones; before there is one only the line's length is known.
    if (!is_full(sample)) {
      if (sample.rtt) small_rtt_.add(sample.now, *sample.rtt);
      return;
    }
    if (sample.full_packet_bytes != full_packet_bytes_) {
      full_packet_bytes_ = sample.full_packet_bytes;
      rtt_ = Delays{};
      forward_ = Delays{};
    }
    if (sample.rtt) rtt_.add(sample.now, lag(), *sample.rtt);
    if (sample.forward_delay) forward_.add(sample.now, lag(), *sample.forward_delay);
  }

  // Only such packets indicate a queue. Repairs need a little room in a packet of data.
  static bool is_full(const RateSample& sample) {
    return std::uint64_t{sample.packet_bytes} * 16 >= std::uint64_t{sample.full_packet_bytes} * 15;
  }

  bool measured() const { return rtt_.base().has_value() || small_rtt_.value().has_value(); }
  // Without queue, as far as was seen within the last seconds.
  Duration base_rtt() const { return rtt_.base() ? *rtt_.base() : small_rtt_.value().value_or(initial_rtt_); }
  // The current queue, as time. A queue in the reverse direction shows only in the round trip, clock drift
  // only in the forward delay.
  Duration queue() const { return std::min(rtt_.above_base(), forward_.above_base()); }
  // The mean difference of delays from one packet to the next: random delays of hosts and lines.
  Duration variation() const { return forward_.variation(); }
  // A growing queue is detected this much later.
  Duration lag() const { return std::clamp<Duration>(base_rtt() / 4, kShortWhile, kLongWhile); }

 private:
  // Long enough that a competing sender that keeps a queue for long is not taken for the line.
  static constexpr Duration kMemory = std::chrono::seconds(60);
  static constexpr Duration kShortWhile = std::chrono::milliseconds(12);
  static constexpr Duration kLongWhile = std::chrono::milliseconds(50);

  class Delays {
   public:
    // The minimum of a short interval: jitter and batches of a busy host delay single packets, a queue all of
    // them. On a slow line the interval is longer, or it would contain a single packet.
    void add(TimePoint now, Duration short_while, Duration value) {
      base_.add(now, value);
      if (last_) {
        variation_ += (std::chrono::abs(value - *last_) - variation_) / 16;
        spacing_ += (std::min<Duration>(now - last_at_, 2 * short_while) - spacing_) / 16;
      }
      last_ = value;
      last_at_ = now;
      window_ = std::max(short_while, 5 * spacing_ / 2);
      recent_.set_window(window_);
      recent_.add(now, value);
      recent_.advance(now);
    }
    std::optional<Duration> base() const { return base_.value(); }
    Duration variation() const { return variation_; }
    Duration above_base() const {
      if (!recent_.value()) return Duration{0};
      const Duration above = *recent_.value() - *base_.value();
      // If few packets arrive in that interval even their minimum is late: of delays evenly spread over a
      // span, one is late by half of the span, the minimum of two by a third; and consecutive ones differ by
      // a third of it.
      const auto count = std::max<Duration::rep>(window_ / std::max<Duration>(spacing_, Duration{1}), 1);
      return std::max<Duration>(above - 3 * variation_ / (count + 1), Duration{0});
    }

   private:
    WindowedMinimum<Duration> base_{kMemory};
    WindowedMinimum<Duration> recent_{kShortWhile};
    std::optional<Duration> last_;
    TimePoint last_at_{};
    Duration variation_{0};  // from one packet to the next
    Duration spacing_{0};    // of packets in time
    Duration window_{kShortWhile};
  };

  Duration initial_rtt_;
  std::uint32_t full_packet_bytes_ = 0;
  Delays rtt_, forward_;                          // of full packets
  WindowedMinimum<Duration> small_rtt_{kMemory};  // of the others
};

}  // namespace longhaul::link::udp
