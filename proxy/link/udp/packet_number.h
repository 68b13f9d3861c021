// SPDX-License-Identifier: Apache-2.0
// The number of a packet: counts up from zero under the keys of one connection, and is never used twice.
// packet.h has its wire form.
#pragma once
#include "proxy/link/types.h"

namespace longhaul::link::udp {

using PacketNumber = Position<struct PacketNumberKind>;

// The part of a number that a packet contains.
inline std::uint32_t low_bits(PacketNumber number) { return static_cast<std::uint32_t>(number.number()); }

}  // namespace longhaul::link::udp
