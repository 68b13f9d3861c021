// SPDX-License-Identifier: Apache-2.0
// The metrics as a request of OTLP/HTTP with the JSON encoding (OpenTelemetry protocol 1.x), and the parser
// for the response. Pure; metric_exporter.h sends it.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/control/metric_families.h"

namespace longhaul::exporting {

struct OtlpSource {
  std::string site, version;
  std::chrono::system_clock::time_point started;  // when the counters started
};

std::string otlp_request(const control::Families& families, const OtlpSource& source,
                         std::chrono::system_clock::time_point now);

// For a response with status 200: a collector may accept only a part. If the response cannot be parsed,
// everything counts as accepted.
struct OtlpAnswer {
  std::uint64_t rejected_points = 0;
  std::string message;
};
OtlpAnswer read_otlp_answer(std::string_view body);

}  // namespace longhaul::exporting
