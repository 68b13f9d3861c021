// SPDX-License-Identifier: Apache-2.0
// Detects that the peer does not respond over UDP at all. Then a firewall has to be changed, and the operator
// is notified once for each session.
#pragma once
#include <optional>

#include "proxy/link/types.h"

namespace longhaul::link::udp {

class AnswerWatch {
 public:
  // A peer that did not respond over UDP for so long, while TCP works, never will.
  static constexpr Duration kLimit = std::chrono::seconds(10);

  // The session has its first keys; later ones do not restart the time.
  void begin(TimePoint now) {
    if (!begun_) begun_ = now;
  }
  void end() { *this = {}; }

  // The state of UDP at this moment.
  enum class Answer : std::uint8_t {
    works,     // a path works
    wanted,    // no path works, and UDP would be used
    unwanted,  // no path works, and UDP is not needed or cannot be judged
  };
  // Returns whether the operator is to be notified that the peer does not respond.
  bool step(Answer answer, TimePoint now) {
    next_.reset();
    if (answer == Answer::works) answered_ = true;
    if (answered_) {
      unanswered_ = false;
      return false;
    }
    if (answer != Answer::wanted || !begun_ || unanswered_) return false;
    if (now < *begun_ + kLimit) {
      next_ = *begun_ + kLimit;
      return false;
    }
    return unanswered_ = true;
  }
  std::optional<TimePoint> next_timeout() const { return next_; }
  bool unanswered() const { return unanswered_; }

 private:
  std::optional<TimePoint> begun_;
  std::optional<TimePoint> next_;
  bool answered_ = false, unanswered_ = false;  // in this session
};

}  // namespace longhaul::link::udp
