// SPDX-License-Identifier: Apache-2.0
// The total capacity of a line, for this sender's packets and those of others, as observed lately. It is
// forgotten slowly; the law observes it.
#pragma once
#include <algorithm>

#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

class SeenCapacity {
 public:
  double value() const { return value_; }  // bytes per second; 0: not known
  void set(double rate) { value_ = rate; }
  void raise(double rate) { value_ = std::max(value_, rate); }
  // The line delivered `rate`: its capacity is at least that, and decreases slowly if no observation confirms
  // it.
  void on_carried(double rate, TimePoint now) {
    value_ = std::max(rate, value_ * (1 - std::min(seconds(now - at_) / 120, 0.1)));
    at_ = now;
  }

 private:
  double value_ = 0;
  TimePoint at_{};
};

}  // namespace longhaul::link::udp
