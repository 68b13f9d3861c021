// SPDX-License-Identifier: Apache-2.0
// Keeps fail = "closed" in force in the kernel, in a table that outlives every process: installed before
// flows are accepted, replaced without a gap, and removed only by the operator. closed_rules.h defines which
// packets it drops.
#pragma once
#include <string>

#include "proxy/config/config.h"
#include "proxy/config/text_error.h"
#include "proxy/intercept/nft_table.h"

namespace longhaul::intercept {

class ClosedDoor {
 public:
  enum class Change : std::uint8_t { none, put_in, taken_out };

  // Enforces the configuration in one transaction: installs its table, or removes it. A failed removal is no
  // error if this process may not access packet rules: then the host has none of ours.
  config::TextResult<Change> enforce(const config::Config& config);
  // Installs stored rules (kept_rules.h).
  config::TextResult<void> enforce_text(const std::string& commands) { return nft_.run(commands); }
  // For the operator's command. Returns false if there was nothing to remove.
  config::TextResult<bool> remove(std::uint16_t port);
  // Whether the kernel has the table.
  config::TextResult<bool> is_in_place(std::uint16_t port);
  // The kernel's table with its counters; empty if there is none.
  config::TextResult<std::string> listing(std::uint16_t port);
  // Whether a running daemon intercepts flows or diverts packets with this port: its own table exists.
  config::TextResult<bool> has_daemon(std::uint16_t port);

 private:
  config::TextResult<bool> has_table(const std::string& name);
  NftTable nft_;
};

// Removes the routing rule and route that a killed daemon left in the kernel and, if the port was changed
// since, the table for the old port. A file in state_dir records that port, so that other daemons' rules are
// kept; nothing is removed while a daemon with that port runs. Then the current port is written to the file.
// Errors are only logged, because the remains do no harm.
config::TextResult<void> take_over_leftovers(const config::Config& config);

}  // namespace longhaul::intercept
