// SPDX-License-Identifier: Apache-2.0
// A congestion window that behaves like CUBIC's (RFC 9438), for use next to senders that fill queues, so that
// neither starves.
#pragma once
#include <algorithm>
#include <cmath>

#include "proxy/link/types.h"

namespace longhaul::link::udp {

class CubicWindow {
 public:
  // In packets.
  void start(double window, TimePoint now) {
    window_ = largest_ = std::max(window, kLeast);
    begin_epoch(now);
    to_origin_ = 0;
  }
  void on_ack(double packets, Duration rtt, TimePoint now) {
    const double time = std::chrono::duration<double>(now - epoch_start_ + rtt).count();
    const double cubic = kScale * std::pow(time - to_origin_, 3) + largest_;
    reno_ += kRenoGrowth * packets / window_;
    const double target = std::max(std::min(cubic, 1.5 * window_), reno_);
    if (target > window_) window_ += (target - window_) * packets / window_;
  }
  // To be called once for each round trip in which packets were lost because a queue was full. `decrease`:
  // the factor applied to the window.
  void on_loss(TimePoint now, double decrease = kDecrease) {
    largest_ = window_ < largest_ ? window_ * (1 + kDecrease) / 2 : window_;  // fast convergence
    window_ = std::max(decrease * window_, kLeast);
    begin_epoch(now);
    to_origin_ = std::cbrt((largest_ - window_) / kScale);
  }
  double window() const { return window_; }

  static constexpr double kDecrease = 0.7;

 private:
  static constexpr double kLeast = 4;  // with less than a packet nothing would ever be sent
  static constexpr double kScale = 0.4;
  static constexpr double kRenoGrowth = 3 * (1 - kDecrease) / (1 + kDecrease);

  void begin_epoch(TimePoint now) {
    epoch_start_ = now;
    reno_ = window_;
  }

  double window_ = 0;
  double largest_ = 0;    // the window before the latest loss
  double reno_ = 0;       // Reno's window: a lower bound
  double to_origin_ = 0;  // seconds from a loss until the window reaches its old size
  TimePoint epoch_start_{};
};

}  // namespace longhaul::link::udp
