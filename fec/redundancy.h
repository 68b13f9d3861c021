// SPDX-License-Identifier: Apache-2.0
// Calculates how many repairs suffice, for independent losses and for bursts.
#pragma once
#include <cstdint>

namespace longhaul::fec {

// The probability that more of `symbols` are lost than of `repairs` arrive, if each packet is lost with
// probability `rate`. For bursts of mean length `burst`, calculates with fewer, larger packets.
double shortfall(std::uint32_t symbols, std::uint32_t repairs, double rate, double burst = 1);

// The smallest number of repairs with a shortfall of at most `target`, up to `most`.
std::uint32_t repairs_for(std::uint32_t symbols, double rate, double burst, double target,
                          std::uint32_t most);

}  // namespace longhaul::fec
