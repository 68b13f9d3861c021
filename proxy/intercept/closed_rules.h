// SPDX-License-Identifier: Apache-2.0
// The text of the packet rules behind fail = "closed": which forwarded TCP packets belong to flows that may
// only use the link. Pure; closed_door.h installs and removes them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/config/text_error.h"

namespace longhaul::intercept {

struct ClosedRules {
  std::vector<std::string> interfaces;  // of the LANs; empty: only packets from and to peers' networks count
  std::uint16_t port = 7650;            // of [intercept]; part of the table's name
  std::vector<config::Network> peers;   // all peers' networks; none holds another
  std::vector<config::Rule> rules;      // in the file's order
  config::Fail otherwise = config::Fail::open;  // of flows between here and the peers' networks

  // Whether there is a closed flow. Without one no table is needed.
  bool close_something() const;
};

// A host that neither intercepts flows nor dials with clients' addresses forwards nothing for the daemon, and
// gets rules that close nothing. An error: a name in [intercept] interfaces cannot be that of an interface.
config::TextResult<ClosedRules> closed_rules(const config::Config& config);

std::string closed_table_name(std::uint16_t port);
// The whole table in the syntax of nft(8). It has no owner, so that it outlives the process that makes it.
std::string closed_table_text(const ClosedRules& rules);
// Commands that replace an older table, or remove it, atomically: there is no moment in between without
// rules.
std::string replace_closed_text(const ClosedRules& rules);
std::string remove_closed_text(std::uint16_t port);

// For another table: the chain closed_flows, with what it needs, judges the SYN of a client on a LAN.
// `closed` is the verdict for a flow that may only use the link; the chain's end is reached by all others.
std::string closed_flows_text(const ClosedRules& rules, std::string_view closed);

}  // namespace longhaul::intercept
