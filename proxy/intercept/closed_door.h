// SPDX-License-Identifier: Apache-2.0
// Keeps fail = "closed" in force in the kernel, in a table that outlives every process: installed before
// flows are accepted, replaced without a gap, and removed only by the operator. closed_rules.h defines which
// packets it stops.
#pragma once
#include <string>

#include "proxy/config/config.h"
#include "proxy/config/text_error.h"
#include "proxy/intercept/nft_table.h"

namespace longhaul::intercept {

class ClosedDoor {
 public:
  enum class Change : std::uint8_t { none, put_in, taken_out };

  // What the configuration says, in one transaction: the table as it asks for it, or none. A host on which
  // this process may not look at packet rules has none of ours, so taking out nothing is no error there.
  config::TextResult<Change> enforce(const config::Config& config);
  // For the command that asks for it. False: there was nothing to remove.
  config::TextResult<bool> remove(std::uint16_t port);
  // Whether the kernel has the table.
  config::TextResult<bool> is_in_place(std::uint16_t port);
  // The table as the kernel has it, with its counters; empty: there is none.
  config::TextResult<std::string> listing(std::uint16_t port);
  // Whether a daemon lives that takes flows, or diverts packets, with this port: its own table is there.
  config::TextResult<bool> has_daemon(std::uint16_t port);

 private:
  config::TextResult<bool> has_table(const std::string& name);
  NftTable nft_;
};

// What a daemon that was killed left in the kernel: its routing rule and route, and where the port has been
// changed since, the table for the old port. Which port that was stands in a file in state_dir, so that
// nothing of another daemon is touched; nor is anything while a daemon with that port lives. Then the file
// says the port that counts from now on. Errors are for the log: nothing that is left does harm.
config::TextResult<void> take_over_leftovers(const config::Config& config);

}  // namespace longhaul::intercept
