// SPDX-License-Identifier: Apache-2.0
// Two hosts that have no processor for the pair now and then: what the link carries meanwhile and afterwards,
// and whether it is taken for silent.
#pragma once
#include <cstdint>

namespace longhaul::bench {

void stalling_hosts(std::uint64_t seeds);

}  // namespace longhaul::bench
