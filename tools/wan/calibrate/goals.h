// SPDX-License-Identifier: Apache-2.0
// What a calibrated line must reach: delay, rate, loss. Pure numbers; leaves the measuring to calibrate.cc.
#pragma once
#include <cstdint>
#include <utility>

namespace longhaul::wan {

// Counts that a fair line stays within in `confidence` of all trials: the smallest and largest count whose
// tails, beyond them, hold at most half of the rest each.
std::pair<std::uint64_t, std::uint64_t> binomial_interval(std::uint64_t trials, double share,
                                                          double confidence);

bool rate_is_right(double set_bits, double measured_bits);                 // within 1 %
bool delay_is_right(double set_ms, double floor_ms, double measured_ms);   // within 0.3 ms of set + floor
bool loss_is_right(std::uint64_t sent, std::uint64_t lost, double share);  // inside the 99.9 % interval

}  // namespace longhaul::wan
