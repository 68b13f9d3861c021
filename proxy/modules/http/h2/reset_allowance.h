// SPDX-License-Identifier: Apache-2.0
// Limits how many streams of a client may end with an error: each costs a request at the server ("rapid
// reset", CVE-2023-44487).
#pragma once
#include <algorithm>
#include <chrono>

#include "proxy/link/types.h"

namespace longhaul::http::h2 {

class ResetAllowance {
 public:
  static constexpr unsigned kMost = 1000, kPerSecond = 100;  // at once, and in each second

  // Counts one more. Returns false if it exceeds the limit.
  bool take(link::TimePoint now) {
    const double seconds = std::chrono::duration<double>(now - at_).count();
    left_ = std::min<double>(kMost, left_ + seconds * kPerSecond);
    at_ = now;
    return (left_ -= 1) >= 0;
  }

 private:
  double left_ = kMost;
  link::TimePoint at_{};
};

}  // namespace longhaul::http::h2
