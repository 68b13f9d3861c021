// SPDX-License-Identifier: Apache-2.0
// A token bucket: drops what exceeds a rate beyond a burst; nothing waits.
#pragma once
#include <algorithm>

#include "tools/wan/aqm/packet.h"

namespace longhaul::wan {

struct Policer {
  std::uint64_t rate_bits = 0;  // IP bits a second
  std::uint64_t burst_bytes = 0;
};

class TokenBucket {
 public:
  // A bucket that is new, or had no policer before, is full.
  void use(const std::optional<Policer>& policer, TimePoint now) {
    refill(now);
    if (policer && !policer_) tokens_ = static_cast<double>(policer->burst_bytes);
    policer_ = policer;
  }
  // True: the packet passes.
  bool take(std::uint32_t bytes, TimePoint now) {
    if (!policer_) return true;
    refill(now);
    if (tokens_ < bytes) return false;
    tokens_ -= bytes;
    return true;
  }

 private:
  void refill(TimePoint now) {
    const double seconds = std::chrono::duration<double>(std::max(now, at_) - at_).count();
    at_ = std::max(now, at_);
    if (policer_)
      tokens_ = std::min(static_cast<double>(policer_->burst_bytes),
                         tokens_ + seconds * static_cast<double>(policer_->rate_bits) / 8);
  }

  std::optional<Policer> policer_;
  double tokens_ = 0;  // bytes
  TimePoint at_{};
};

}  // namespace longhaul::wan
