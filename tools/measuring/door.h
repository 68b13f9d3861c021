// SPDX-License-Identifier: Apache-2.0
// A listening socket that accepts connections with the pass. Others are closed without an answer, and silent
// ones block no one. Never waits: the user polls the descriptors of watch().
#pragma once
#include <poll.h>

#include <chrono>
#include <deque>
#include <optional>
#include <vector>

#include "tools/measuring/pass.h"
#include "tools/wan/descriptor.h"

namespace longhaul::measuring {

class Door {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // The listener is borrowed, and non-blocking.
  Door(int listener, Pass pass) : listener_(listener), pass_(pass) {}

  void watch(std::vector<pollfd>& into) const;  // adds what look() reads from
  struct Admitted {
    wan::Descriptor socket;  // blocking; read from it are the pass's bytes and no more
    TimePoint accepted;
  };
  // Takes what has come. Throws Trouble where this host has no descriptor left.
  std::optional<Admitted> look(TimePoint now);
  std::size_t strangers() const { return strangers_; }  // that were turned away, so far

 private:
  struct Caller {
    wan::Descriptor socket;
    TimePoint accepted;
    PassReader reader;
  };
  void accept_all(TimePoint now);

  int listener_;
  Pass pass_;
  std::deque<Caller> callers_;  // the oldest first
  std::size_t strangers_ = 0;
};

}  // namespace longhaul::measuring
