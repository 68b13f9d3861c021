// SPDX-License-Identifier: Apache-2.0
// Where time begins in tests that have no other clock; not at zero, which could be taken for "never".
#pragma once
#include "proxy/link/types.h"

namespace longhaul::link {

inline constexpr TimePoint kStart{std::chrono::hours(1)};

}  // namespace longhaul::link
