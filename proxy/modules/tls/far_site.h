// SPDX-License-Identifier: Apache-2.0
// What the far halves of a daemon share: the tables, and what was learnt of connections that could not be
// terminated.
#pragma once
#include <memory>

#include "proxy/modules/memory.h"
#include "proxy/modules/tls/leg.h"
#include "proxy/modules/tls/policy.h"
#include "proxy/modules/tls/remembered.h"

namespace longhaul::tls {

struct Site {
  std::shared_ptr<const Policy> policy;  // null: nothing is listed
  Context undecided = make_undecided();  // reads ClientHellos
  Remembered remembered;
  std::shared_ptr<modules::Memory> memory{};  // of all modules; null: nothing is counted

 private:
  static Context make_undecided() {
    Context made = context_undecided();
    hand_out_sessions(made.get(), kSessions);
    return made;
  }
};

}  // namespace longhaul::tls
