// SPDX-License-Identifier: Apache-2.0
// The controller: carries a plan out against a host where `longhaul-ttcp serve` runs. Leaves the report's
// form to table.h.
#pragma once
#include <functional>

#include "tools/ttcp/channel.h"
#include "tools/ttcp/table.h"

namespace longhaul::ttcp {

struct SweepOptions {
  std::string host;
  std::uint16_t control_port = 0;
  std::string token;  // as the receiver's
  Family family = Family::any;
  SocketOptions socket;  // at both ends
  double udp_rate = 0;   // bits of payload per second; 0: as fast as the host can
  double least_seconds = 0;
  double most_seconds = 0;
  Duration pause = std::chrono::milliseconds{500};  // between the last packet and the end marks
  Duration silence = std::chrono::seconds{2};       // after which the receiver takes the end marks for lost
  Duration gap = std::chrono::milliseconds{100};    // between two tests, for queues to drain
  Duration patience = std::chrono::seconds{10};     // for a connection
};

// Called after each test with all rows so far. What ends the sweep early is thrown: Trouble,
// Interrupted; the report then holds what was measured.
using OnRow = std::function<void(const Report&)>;
void run_sweep(const std::vector<Test>& plan, const SweepOptions& options, Report& report, const Stop& stop,
               const OnRow& on_row);

}  // namespace longhaul::ttcp
