// SPDX-License-Identifier: Apache-2.0
// Questions to the peer over a carrier other than the preferred one: whether that carrier works while the
// preferred one may not. They are PINGs with numbers of their own; the PONG returns on the same carrier.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>

#include "proxy/link/frames.h"

namespace longhaul::link {

class Questions {
 public:
  static bool is_question(std::uint64_t number) { return number >= kFirst; }

  // ---- Of this side. Only the latest counts, and none of them measures the path.
  void ask(Buffer& out) { write_frame(PingFrame{kFirst + ++asked_}, out); }  // a whole frame
  void on_answered(std::uint64_t number) {
    if (number == kFirst + asked_) answered_ = asked_;
  }
  bool answered() const { return asked_ > 0 && answered_ == asked_; }

  // ---- Of the peer. Only the latest needs an answer.
  void on_asked(std::uint64_t number) { unanswered_ = number; }
  // A whole frame, for the carrier of the question: the preferred one may be what fails. None is due:
  // nothing.
  void answer(Buffer& out) {
    if (const auto number = std::exchange(unanswered_, std::nullopt)) write_frame(PongFrame{*number}, out);
  }

 private:
  static constexpr std::uint64_t kFirst = std::uint64_t{1} << 60;  // never reached by ordinary PINGs
  std::uint64_t asked_ = 0, answered_ = 0;
  std::optional<std::uint64_t> unanswered_;
};

}  // namespace longhaul::link
