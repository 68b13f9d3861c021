// SPDX-License-Identifier: Apache-2.0
// Tests whether TCP works while nothing is acknowledged over UDP: both are probed at the same moment, more
// than once. udp_paths.h sends the probes and acts on the result.
#pragma once

namespace longhaul::link::udp {

class CarrierContest {
 public:
  enum class Next { nothing, ask_both, tcp_won };

  // To be called whenever anything may have changed. `in_doubt`: UDP has been silent for a while;
  // `tcp_answered`: the latest TCP probe was answered.
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
  // While a queue overflows, it is chance which packet of two arrives. The first probe over UDP has another
  // round trip until the second response over TCP.
  static constexpr int kWins = 2;

  int wins_ = 0;
  bool asked_ = false;
};

}  // namespace longhaul::link::udp
