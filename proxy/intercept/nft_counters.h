// SPDX-License-Identifier: Apache-2.0
// Reads named counters of an nftables table. Asks the kernel for each by its name: nft(8) and its library
// would read every element of every set first, which can be hundreds of thousands.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace longhaul::intercept {

// Packets that each counter of the inet table has counted; 0 for one that is not there or cannot be read. A
// few microseconds each.
std::vector<std::uint64_t> counted_packets(const std::string& table,
                                           std::span<const std::string_view> counters);

}  // namespace longhaul::intercept
