// SPDX-License-Identifier: Apache-2.0
// Tables of lines that change while a transfer runs, and of slow lines without a configured rate. Leaves stable
// lines to main.cc.
#pragma once
#include <cstdint>
#include <string>

namespace longhaul::bench {

// Steps of delay, rate and loss, radios, full and managed queues, policers, outages, other traffic: with the
// configured and with a measured rate, and CUBIC in our place. `only`: of the rows, those whose name contains
// it.
void changing_lines(std::uint64_t seeds, const std::string& only);

// 64 to 256 kbit/s, a policer, and a download that begins with the link.
void slow_lines(std::uint64_t seeds);

}  // namespace longhaul::bench
