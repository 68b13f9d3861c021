// SPDX-License-Identifier: Apache-2.0
// The states of a link: since when it has the current one, and whether it was ever up.
#pragma once
#include "proxy/link/status.h"
#include "proxy/link/types.h"

namespace longhaul::link {

class StateHistory {
 public:
  explicit StateHistory(TimePoint now) : since_(now) {}

  // A connection carried the session.
  void on_connected() { ever_up_ = true; }
  // The state of a link without a usable session.
  LinkState without_session() const { return ever_up_ ? LinkState::down : LinkState::never_up; }

  struct Change {
    bool changed = false;
    bool was_up = false;  // before the change
  };
  Change note(LinkState state, TimePoint now) {
    if (state == last_) return {};
    const bool was_up = last_ == LinkState::up;
    last_ = state;
    since_ = now;
    return {true, was_up};
  }
  TimePoint since() const { return since_; }

 private:
  bool ever_up_ = false;
  TimePoint since_;
  LinkState last_ = LinkState::never_up;
};

}  // namespace longhaul::link
