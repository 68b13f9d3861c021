// SPDX-License-Identifier: Apache-2.0
// Determines the latest time for an ACK. An ACK only frees memory at the sender, so it may be delayed; how
// long depends on how much data has arrived.
#pragma once
#include <algorithm>
#include <optional>

#include "proxy/link/types.h"

namespace longhaul::link {

class AckTimer {
 public:
  static constexpr Duration kShortest = std::chrono::milliseconds(10);

  // `wire` bytes arrived in order; blocks in them decode to `plain` bytes.
  void on_received(std::uint64_t wire, std::uint64_t plain) {
    wire_ += wire;
    plain_ += plain;
  }
  // Whether enough has arrived to send an ACK now.
  bool has_much() const { return wire_ >= kMuch; }
  // A quarter of a round trip. If little arrives there is little to free, and the carrier's own
  // acknowledgement of each ACK would take its share of a slow line: one in ten milliseconds takes 2 % of a
  // T1.
  Duration delay(Duration rtt) const {
    return std::max(wire_, plain_) < kLittle ? kDelayOfLittle : std::clamp(rtt / 4, kShortest, kLongest);
  }

  void due(TimePoint at, TimePoint now) {
    if (at <= now) {
      ready_ = true;
      at_.reset();
    } else if (!ready_) {
      at_ = at_ ? std::min(*at_, at) : at;
    }
  }
  // ACKs may stay pending while a carrier has no room: from then on they wait for the carrier, not for the
  // timer.
  void on_timeout(TimePoint now) {
    if (at_ && now >= *at_) due(now, now);
  }
  void on_written() { *this = {}; }

  bool pending() const { return ready_ || at_; }
  bool is_due(TimePoint now) const { return ready_ || (at_ && now >= *at_); }
  std::optional<TimePoint> next_timeout() const { return at_; }

 private:
  static constexpr std::uint64_t kMuch = 256 * 1024, kLittle = 32 * 1024;
  static constexpr Duration kLongest = std::chrono::milliseconds(100);
  static constexpr Duration kDelayOfLittle = std::chrono::milliseconds(250);

  std::uint64_t wire_ = 0, plain_ = 0;  // since the last ACK
  bool ready_ = false;
  std::optional<TimePoint> at_;
};

}  // namespace longhaul::link
