// SPDX-License-Identifier: Apache-2.0
// Policy routing for diverted packets: packets with our mark use a routing table that delivers them to this
// machine, for IPv4 and IPv6. The nftables rules set the mark; other packets are not affected.
#pragma once
#include <cstdint>

#include "proxy/config/text_error.h"

namespace longhaul::intercept {

struct PolicyRoute {
  std::uint32_t mark = 0;
  std::uint32_t table = 0;  // number of the routing table
  std::uint32_t priority =
      150;  // precedes every ordinary rule (32766: main), and follows the kernel's own (0: local)
};

// ip rule add fwmark MARK lookup TABLE; ip route add local default dev lo table TABLE; both families. Rules
// left by a killed daemon are reused. A machine without IPv6 gets only the IPv4 rules.
config::TextResult<void> add(const PolicyRoute& route);
// Removes the rules; missing ones are not an error.
void remove(const PolicyRoute& route);

}  // namespace longhaul::intercept
