// SPDX-License-Identifier: Apache-2.0
// `longhaul-txn run`: brings pairs of agents together for one row, starts them at once, collects what they
// measure.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include "tools/measuring/connection.h"
#include "tools/txn/results.h"

namespace longhaul::txn {

struct AgentPair {
  measuring::Endpoint from;  // drives the transactions
  measuring::Endpoint to;    // serves them
  std::string data_address;  // where `from` finds `to`; empty: where the console found it
};

struct ConsoleOptions {
  std::vector<AgentPair> agents;
  std::uint16_t data_port = 0;  // of the first pair, the others count up; 0: any that is free
  std::string token;
};

// One row: `row.pairs` times each pair of agents, all at the same time. SIGINT and SIGTERM end it early, with
// what was measured until then; trouble is in the result. Lines of progress go to `progress` where it is not
// null.
RowResult run_row(const ConsoleOptions& options, const Row& row, std::ostream* progress);

}  // namespace longhaul::txn
