// SPDX-License-Identifier: Apache-2.0
// `longhaul-txn agent`: waits for consoles and does what they say, for each pair one end, on a thread of its
// own.
#pragma once
#include <iosfwd>
#include <string>

#include "tools/measuring/connection.h"

namespace longhaul::txn {

struct AgentOptions {
  measuring::Endpoint listen;
  std::string token;
};

// Until SIGINT or SIGTERM. Throws Trouble where it cannot listen.
void run_agent(const AgentOptions& options, std::ostream& log);

}  // namespace longhaul::txn
