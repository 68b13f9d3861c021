// SPDX-License-Identifier: Apache-2.0
// The routing behind the diverting rules: packets with our mark use a table that delivers to this machine,
// for IPv4 and IPv6. The nftables rules set the mark; other packets never see this routing.
#pragma once
#include <cstdint>

#include "proxy/config/text_error.h"

namespace longhaul::intercept {

struct PolicyRoute {
  std::uint32_t mark = 0;
  std::uint32_t table = 0;  // number of the routing table
  std::uint32_t priority =
      150;  // before every ordinary rule (32766: main), after the kernel's own (0: local)
};

// ip rule add fwmark MARK lookup TABLE; ip route add local default dev lo table TABLE; both families. Rules
// left by a killed daemon are reused. A machine without IPv6 gets IPv4 alone.
config::TextResult<void> add(const PolicyRoute& route);
// Removes the rules; missing ones are not an error.
void remove(const PolicyRoute& route);

}  // namespace longhaul::intercept
