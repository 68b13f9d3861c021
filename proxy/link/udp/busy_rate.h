// SPDX-License-Identifier: Apache-2.0
// Measures the rate at which a line delivers this link's packets while there is a queue, and whether a stall
// of the line caused that queue. Rates are measured over short intervals between arrivals: after a stall a
// line is as fast as before, while a measurement over a round trip would include the stall.
#pragma once
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "proxy/link/udp/line_watch.h"
#include "proxy/link/udp/sent_packets.h"

namespace longhaul::link::udp {

class BusyRate {
 public:
  // `stands`: there is a queue, so the line was busy from the last arrival to this one; with our packets
  // alone only if we had enough to send.
  void on_sample(const RateSample& sample, bool stands) {
    if (!sample.forward_delay) return;
    if (LineWatch::is_full(sample)) {
      // A packet may arrive in the middle of a stall.
      const Duration delay = *sample.forward_delay;
      if (delays_) jumps_.add(sample.now, delay - std::min(delays_->first, delays_->second));
      delays_ = std::pair(delays_ ? delays_->second : delay, delay);
    }
    if (!stands || !sample.delivery || sample.delivery->application_limited) {
      queue_.reset();
      return;
    }
    const TimePoint arrival = sample.sent_at + *sample.forward_delay;  // by an independent clock
    if (!queue_) {
      queue_ = Queue{.since = arrival, .jump = jumps_.value().value_or(Duration{0})};
      return;
    }
    Queue& queue = *queue_;
    if (jumps_.value()) queue.jump = std::max(queue.jump, *jumps_.value());
    queue.bytes += sample.acked_bytes;
    const Duration time = arrival - queue.since;
    if (time < SentPackets::kMinTrain || queue.bytes < kFewest * sample.full_packet_bytes) return;
    std::shift_right(queue.pieces.begin(), queue.pieces.end(), 1);
    queue.pieces[0] = static_cast<double>(queue.bytes) / seconds(time);
    queue.since = arrival;
    queue.bytes = 0;
  }

  // Bytes per second that arrived, the best of the last three samples; nullopt before there are two.
  std::optional<double> value() const {
    if (!queue_ || queue_->pieces[1] == 0) return std::nullopt;
    return *std::max_element(queue_->pieces.begin(), queue_->pieces.end());
  }

  // The largest delay of a packet compared with those before it, since shortly before the queue appeared: a
  // stalled line builds its whole queue at once, other traffic builds it gradually.
  Duration jump() const { return queue_ ? queue_->jump : Duration{0}; }

 private:
  static constexpr std::uint64_t kFewest = 4;  // packets in a sample
  static constexpr Duration kShortly = std::chrono::milliseconds(200);

  struct Queue {
    TimePoint since;                 // start of the current sample
    std::uint64_t bytes = 0;         // that arrived in it
    std::array<double, 3> pieces{};  // bytes per second, the newest first; 0: not yet
    Duration jump{0};
  };
  std::optional<Queue> queue_;
  std::optional<std::pair<Duration, Duration>> delays_;  // of the last two packets
  WindowedMaximum<Duration> jumps_{kShortly};
};

}  // namespace longhaul::link::udp
