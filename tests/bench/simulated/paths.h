// SPDX-License-Identifier: Apache-2.0
// Tables of a session over two lines: bulk over both, small messages beside it, and one line cut or flapping.
// Leaves one line to main.cc.
#pragma once
#include <cstdint>

namespace longhaul::bench {

// The sum of both lines, the delay of messages while bulk runs, and the least second while one line is cut.
void two_paths(std::uint64_t seeds);

// What messages lose when the better line ends.
void failing_path();

// The delay of messages alone on lines that lose packets, flap, or let only one direction through.
void doubtful_paths(std::uint64_t seeds);

}  // namespace longhaul::bench
