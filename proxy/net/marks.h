// SPDX-License-Identifier: Apache-2.0
// The firewall marks of packets and sockets, set by the rules and the dialer.
#pragma once
#include <cstdint>

namespace longhaul::net {

// For the daemon's own outgoing connections, which must not be intercepted again. "LI" and 1.
inline constexpr std::uint32_t kOwnSocketMark = 0x4c49'0001;

// For packets delivered to a transparent socket here. The listener's port is part of the mark ("LH" and the
// port), so that two daemons in one network namespace never share a mark, a routing rule or a routing table.
constexpr std::uint32_t divert_mark(std::uint16_t listener_port) { return 0x4c48'0000u | listener_port; }

}  // namespace longhaul::net
