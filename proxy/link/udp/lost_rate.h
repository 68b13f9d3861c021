// SPDX-License-Identifier: Apache-2.0
// Whether the measured rate is lost: far below what the line seemed to carry, although nothing is in its way.
// Raising it step by step would take a minute, so it is measured anew. The law does that.
#pragma once
#include <algorithm>

#include "proxy/link/udp/line_model.h"

namespace longhaul::link::udp {

class LostRate {
 public:
  // What the line seems to carry, bytes per second. Without any, no rate is lost.
  void promise(double rate) { promised_ = std::max(promised_, rate); }
  // `cruised`: how long the law has sent at the line's rate.
  bool is_lost(Duration cruised, const LineModel& line) const {
    using namespace std::chrono_literals;
    return line.rate() < promised_ / kLost && line.is_stretched() && line.is_calm() &&
           cruised > std::max<Duration>(4 * line.watch.base_rtt(), 500ms);
  }
  // Less is expected each time, so that a line that has really become slow is measured anew once or twice.
  void on_begun_anew() { promised_ /= kLost; }

 private:
  static constexpr double kLost = 8;  // a rate below 1/8 of what the line seemed to carry counts as lost

  double promised_ = 0;
};

}  // namespace longhaul::link::udp
