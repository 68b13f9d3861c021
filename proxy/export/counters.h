// SPDX-License-Identifier: Apache-2.0
// What the exporters count, for the status and the metrics.
#pragma once
#include <cstdint>
#include <string>

namespace longhaul::exporting {

struct FlowExportCounters {
  std::uint64_t messages = 0;         // sent, those with templates included
  std::uint64_t records = 0;          // of flows, sent
  std::uint64_t dropped_records = 0;  // the queue was full
  std::uint64_t failures = 0;         // a look-up or a send that failed
  std::string last_error;             // of the last look-up or send; empty: it succeeded
};

struct MetricExportCounters {
  std::uint64_t sent = 0;             // requests that were accepted
  std::uint64_t failed = 0;           // requests that were not, or only in part
  std::uint64_t rejected_points = 0;  // that the collector reported
  std::string last_error;             // of the last request; empty: it was accepted
};

}  // namespace longhaul::exporting
