// SPDX-License-Identifier: Apache-2.0
// The daemon's counters as Prometheus text. Every part keeps its own plain counters; this exporter reads them
// all at the moment of the scrape.
#pragma once
#include <cstdint>
#include <string>

#include "proxy/control/controlled.h"

namespace longhaul::control {

// Of the control API itself.
struct ApiCounters {
  std::uint64_t connections = 0;  // open now
  std::uint64_t accepted = 0;
  std::uint64_t turned_away = 0;  // over the limit on connections
  std::uint64_t requests = 0;
  std::uint64_t refused = 0;  // requests answered with 4xx
};

std::string metrics_text(const Status& status, const flows::FlowTable& flows,
                         const config::Features& features, const ApiCounters& api);

}  // namespace longhaul::control
