// SPDX-License-Identifier: Apache-2.0
// Counters of the exporters, for the status and the metrics.
#pragma once
#include <cstdint>
#include <string>

namespace longhaul::exporting {

struct FlowExportCounters {
  std::uint64_t messages = 0;         // sent, including templates
  std::uint64_t records = 0;          // records of flows sent
  std::uint64_t dropped_records = 0;  // because the queue was full
  std::uint64_t failures = 0;         // failed look-ups and sends
  std::string last_error;             // of the last look-up or send; empty if it succeeded
};

struct MetricExportCounters {
  std::uint64_t sent = 0;             // accepted requests
  std::uint64_t failed = 0;           // requests rejected at least in part
  std::uint64_t rejected_points = 0;  // as reported by the collector
  std::string last_error;             // of the last request; empty if it was accepted
};

}  // namespace longhaul::exporting
