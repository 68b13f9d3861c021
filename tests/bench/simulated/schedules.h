// SPDX-License-Identifier: Apache-2.0
// Random schedules of changes of a line (tests/proxy/link/udp/random_schedule.h), many of them: which seeds
// fail, and which go on only late.
#pragma once
#include <cstdint>

namespace longhaul::bench {

// `traced`: with what both laws know, four times a second.
void schedules(std::uint64_t first, std::uint64_t count, bool traced);

}  // namespace longhaul::bench
