// SPDX-License-Identifier: Apache-2.0
// Schedules of lines that change as radio and satellite links do, from a seed. Leaves playing them to
// schedule.h.
#pragma once
#include <array>

#include "tools/wan/schedule.h"

namespace longhaul::wan {

struct TraceKind {
  std::string_view name;
  std::string_view help;
};
extern const std::array<TraceKind, 4> kTraceKinds;

struct TraceOptions {
  std::string kind;
  std::uint64_t seed = 1;
  Duration length = std::chrono::seconds(60);
};

struct Trace {
  Duration length{};
  std::string text;  // of a schedule
};
// The error is a sentence. The same on every machine.
Parsed<Trace> make_trace(const TraceOptions& options);

}  // namespace longhaul::wan
