// SPDX-License-Identifier: Apache-2.0
// The text of the packet rules for fail = "closed", which match forwarded TCP packets of flows that may only
// use the link. Pure; closed_door.h installs and removes them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/config/text_error.h"

namespace longhaul::intercept {

struct ClosedRules {
  std::vector<std::string> interfaces;  // of the LANs; empty: only packets from and to peers' networks match
  std::uint16_t port = 7650;            // of [intercept]; part of the table's name
  std::vector<config::Network> peers;   // all peers' networks, not nested
  std::vector<config::Rule> rules;      // in the file's order
  config::Fail otherwise = config::Fail::open;  // for flows between this site and the peers' networks

  // Whether any flow is closed; otherwise no table is needed.
  bool close_something() const;
};

// A host that neither intercepts flows nor connects with clients' addresses forwards nothing for the daemon,
// so its rules close nothing. Fails if a name in [intercept] interfaces is not valid for an interface.
config::TextResult<ClosedRules> closed_rules(const config::Config& config);

std::string closed_table_name(std::uint16_t port);
// The whole table in the syntax of nft(8). It has no owner, so that it outlives the process that creates it.
std::string closed_table_text(const ClosedRules& rules);
// Commands that atomically replace an older table, or remove it, without a gap in between.
std::string replace_closed_text(const ClosedRules& rules);
std::string remove_closed_text(std::uint16_t port);

// For use in another table: the chain closed_flows and the sets that it needs, for a SYN from a client on a
// LAN. `closed` is the verdict for a flow that may only use the link; all others reach the chain's end.
std::string closed_flows_text(const ClosedRules& rules, std::string_view closed);

}  // namespace longhaul::intercept
