// SPDX-License-Identifier: Apache-2.0
// Tables of lines that change while a transfer runs, and of slow lines without a configured rate. Leaves stable
// lines to main.cc.
#pragma once
#include <cstdint>

namespace longhaul::bench {

// Steps of delay, rate and loss, radios, full and managed queues, policers, outages, other traffic: with the
// configured and with a measured rate, and CUBIC in our place.
void changing_lines(std::uint64_t seeds);

// 64 to 256 kbit/s, a policer, and a download that begins with the link.
void slow_lines(std::uint64_t seeds);

}  // namespace longhaul::bench
