// SPDX-License-Identifier: Apache-2.0
// Whether TCP works while nothing is acknowledged over UDP: both are asked at the same moment, more than
// once. Leaves asking, and what follows, to udp_paths.h.
#pragma once

namespace longhaul::link::udp {

class CarrierContest {
 public:
  enum class Next { nothing, ask_both, tcp_won };

  // Call it whenever anything may have changed. `in_doubt`: UDP has been silent for a while; `tcp_answered`:
  // what it was asked last.
  Next step(bool in_doubt, bool tcp_answered) {
    if (!in_doubt) {
      wins_ = 0;
      asked_ = false;
      return Next::nothing;
    }
    if (wins_ == kWins || (asked_ && !tcp_answered)) return Next::nothing;
    if (asked_ && ++wins_ == kWins) return Next::tcp_won;
    asked_ = true;
    return Next::ask_both;
  }

 private:
  // While a queue overflows, which packet of two gets through is luck. What was asked over UDP the first time
  // has a round trip more until the second answer.
  static constexpr int kWins = 2;

  int wins_ = 0;
  bool asked_ = false;
};

}  // namespace longhaul::link::udp
