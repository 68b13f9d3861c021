// SPDX-License-Identifier: Apache-2.0
// Round-trip time: smoothed, its variation, and the recent minimum (RFC 9002, section 5).
#pragma once
#include <algorithm>

#include "proxy/link/types.h"
#include "proxy/link/udp/windowed.h"

namespace longhaul::link::udp {

class RttEstimator {
 public:
  // The estimate before the first sample (RFC 9002, section 6.2.2), or from an earlier measurement of the
  // path.
  explicit RttEstimator(Duration initial = kInitial)
      : smoothed_(initial), variation_(initial / 2), latest_(initial) {}

  // `rtt`: from sending to the ACK; `ack_delay`: the receiver's part of it. Both are checked.
  void on_sample(Duration rtt, Duration ack_delay, TimePoint now);

  bool measured() const { return measured_; }
  Duration smoothed() const { return smoothed_; }
  Duration variation() const { return variation_; }
  Duration latest() const { return latest_; }  // without the receiver's delay
  Duration minimum() const { return minimum_.value().value_or(smoothed_); }
  // The minimum within a minute: excludes the queue that a transfer causes for some seconds.
  Duration lasting_minimum() const { return lasting_minimum_.value().value_or(smoothed_); }

  // Without back-off (RFC 9002, section 6.2.1).
  Duration probe_timeout(Duration max_ack_delay) const {
    return smoothed_ + std::max<Duration>(4 * variation_, kGranularity) + max_ack_delay;
  }

  static constexpr Duration kInitial = std::chrono::milliseconds(333);
  static constexpr Duration kGranularity = std::chrono::milliseconds(1);
  static constexpr Duration kWindow = std::chrono::seconds(10), kLastingWindow = std::chrono::minutes(1);

 private:
  Duration smoothed_;
  Duration variation_;
  Duration latest_;
  bool measured_ = false;
  WindowedMinimum<Duration> minimum_{kWindow}, lasting_minimum_{kLastingWindow};
};

}  // namespace longhaul::link::udp
