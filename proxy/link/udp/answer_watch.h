// SPDX-License-Identifier: Apache-2.0
// Whether the peer answers over UDP at all. If it does not, a firewall has to be changed, and the operator is
// told once for each session.
#pragma once
#include <optional>

#include "proxy/link/types.h"

namespace longhaul::link::udp {

class AnswerWatch {
 public:
  // A peer that did not answer over UDP for so long, while TCP works, will not.
  static constexpr Duration kLimit = std::chrono::seconds(10);

  // The session has keys; the first ones count.
  void begin(TimePoint now) {
    if (!begun_) begun_ = now;
  }
  void end() { *this = {}; }

  // What matters now.
  enum class Answer : std::uint8_t {
    works,     // a path works
    wanted,    // none does, and UDP would be used
    unwanted,  // none does, and none is needed or could be judged
  };
  // True: the operator is to be told that the peer does not answer.
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
