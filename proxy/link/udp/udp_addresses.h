// SPDX-License-Identifier: Apache-2.0
// Checks of the addresses of a carrier's two ends.
#pragma once
#include <cstring>

#include "proxy/link/endpoint.h"
#include "proxy/link/udp/path_mtu.h"

namespace longhaul::link::udp {

inline bool unknown(const UdpAddress& address) { return address.port() == 0; }

// A dual-stack socket reports IPv4 peers as mapped addresses.
inline IpFamily family(const UdpAddress& address) {
  return address.address().is_v6() && !address.address().to_v6().is_v4_mapped() ? IpFamily::v6 : IpFamily::v4;
}

// Bytes of headers: 8 (UDP), and 20 or 40 (IP).
inline std::uint32_t head_bytes(const UdpAddress& peer) {
  return peer.address().is_v6() && !peer.address().to_v6().is_v4_mapped() ? 48 : 28;
}

// Compares the kernel's raw addresses first, which are nearly always equal, and then their meaning.
inline bool same(const UdpAddress& a, const UdpAddress& b) {
  return (a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0) || a == b;
}

}  // namespace longhaul::link::udp
