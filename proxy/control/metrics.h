// SPDX-License-Identifier: Apache-2.0
// The daemon's counters as metrics. Every part has its own plain counters; they are all read here, once per
// scrape.
#pragma once
#include <cstdint>
#include <string>

#include "proxy/control/controlled.h"
#include "proxy/control/metric_families.h"

namespace longhaul::control {

// Counters of the control API itself.
struct ApiCounters {
  std::uint64_t connections = 0;  // open now
  std::uint64_t accepted = 0;
  std::uint64_t turned_away = 0;  // over the limit on connections
  std::uint64_t requests = 0;
  std::uint64_t refused = 0;  // requests answered with 4xx
};

Families metric_families(const Status& status, const flows::FlowTable& flows, const config::Features& features,
                         const ApiCounters& api);

}  // namespace longhaul::control
