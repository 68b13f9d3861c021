// SPDX-License-Identifier: Apache-2.0
// Runs another program and reads its output, within limits of time and size.
#pragma once
#include <chrono>
#include <string>
#include <vector>

namespace longhaul::cli {

struct OutputLimits {
  std::chrono::milliseconds time{10'000};
  std::size_t bytes = 8 << 20;  // the end of a longer output is cut off
};

// Standard output and standard error together; after a failure, a last line in brackets gives the reason.
std::string program_output(const std::vector<std::string>& words, OutputLimits limits = {});

}  // namespace longhaul::cli
