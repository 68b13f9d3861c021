// SPDX-License-Identifier: Apache-2.0
// When this process counts as stalled.
#pragma once
#include "proxy/link/types.h"

namespace longhaul::link {

// If a timer fires later than this, the process did not run in the meantime: it had no processor, or was
// stopped. Nothing is concluded from what it did not receive in that time.
inline constexpr Duration kStall = std::chrono::milliseconds(100);

}  // namespace longhaul::link
