// SPDX-License-Identifier: Apache-2.0
// Measures which cipher is faster on this machine. It needs a clock, so it is not part of the carrier.
#pragma once
#include "proxy/link/udp/packet_keys.h"

namespace longhaul::link::udp {

// Measured for about a millisecond at the first call.
Cipher choose_cipher();

}  // namespace longhaul::link::udp
