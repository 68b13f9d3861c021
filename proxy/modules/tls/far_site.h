// SPDX-License-Identifier: Apache-2.0
// Shared by the far halves of a daemon: the tables, and which connections could not be terminated.
#pragma once
#include <memory>

#include "proxy/modules/memory.h"
#include "proxy/modules/tls/leg.h"
#include "proxy/modules/tls/policy.h"
#include "proxy/modules/tls/remembered.h"

namespace longhaul::tls {

struct Site {
  std::shared_ptr<const Policy> policy;  // null: no server is listed
  Context undecided = make_undecided();  // parses ClientHellos
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
