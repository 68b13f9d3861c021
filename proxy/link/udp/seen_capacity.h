// SPDX-License-Identifier: Apache-2.0
// What a line carries in total, this sender's packets and those of others, as far as it was seen lately. It
// is forgotten slowly; what shows it is left to the law.
#pragma once
#include <algorithm>

#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

class SeenCapacity {
 public:
  double value() const { return value_; }  // bytes per second; 0: not known
  void set(double rate) { value_ = rate; }
  void raise(double rate) { value_ = std::max(value_, rate); }
  // `rate` was carried: at least so much, and a little less than before if nothing shows it any more.
  void on_carried(double rate, TimePoint now) {
    value_ = std::max(rate, value_ * (1 - std::min(seconds(now - at_) / 120, 0.1)));
    at_ = now;
  }

 private:
  double value_ = 0;
  TimePoint at_{};
};

}  // namespace longhaul::link::udp
