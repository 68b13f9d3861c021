// SPDX-License-Identifier: Apache-2.0
// Reads named counters of an nftables table. Queries the kernel for each counter by name: nft(8) and its
// library would first read all elements of all sets, possibly hundreds of thousands.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace longhaul::intercept {

// The packet count of each counter in the inet table; 0 for a missing or unreadable counter. Takes a few
// microseconds each.
std::vector<std::uint64_t> counted_packets(const std::string& table,
                                           std::span<const std::string_view> counters);

}  // namespace longhaul::intercept
