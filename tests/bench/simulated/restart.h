// SPDX-License-Identifier: Apache-2.0
// What a rate that an earlier daemon measured is worth to the first download, on the same line and on one
// that has changed since.
#pragma once
#include <cstdint>

namespace longhaul::bench {

void restarts(std::uint64_t seeds);

}  // namespace longhaul::bench
