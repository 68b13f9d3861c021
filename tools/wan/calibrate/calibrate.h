// SPDX-License-Identifier: Apache-2.0
// Measures the emulator between two hosts of its own and prints what was set, what came out, and what the
// source's emulator did. Leaves the goals to goals.h.
#pragma once
#include <ostream>
#include <string>

namespace longhaul::wan {

struct CalibrateOptions {
  std::string program = "/proc/self/exe";  // run as the emulator
  bool quick = false;  // under a minute: shorter, and iperf3 only where the source's table needs it
  unsigned runs = 3;   // of iperf3 per rate, of which the mean is printed; the source made 10
};

// True if every goal was met. Throws std::runtime_error where it could not be measured.
bool calibrate(const CalibrateOptions& options, std::ostream& out);

}  // namespace longhaul::wan
