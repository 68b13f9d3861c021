// SPDX-License-Identifier: Apache-2.0
// Flows as JSON: live, ended and forecast ones. Names and units of the fields are the API's contract
// (README.md in this folder).
#pragma once
#include <boost/json/object.hpp>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/control/controlled.h"

namespace longhaul::control {

using SteadyTime = std::chrono::steady_clock::time_point;

// The properties of links that are shown for their flows.
class LinkFacts {
 public:
  explicit LinkFacts(const Status& status);
  struct Facts {
    std::string peer;
    std::string carrier;  // empty if none is in use
    std::chrono::microseconds rtt;
  };
  const Facts* of(std::string_view peer) const;  // null if there is no such link

 private:
  std::vector<Facts> by_peer_;
};

boost::json::object view(const flows::FlowBytes& bytes);
boost::json::object view(const flows::FlowRecord& flow, const LinkFacts& links, SteadyTime now);
boost::json::object view(const flows::FlowTable::Ended& flow);
// The counters of one flow's module, or the sum over a module's flows.
boost::json::object view_counters(const modules::Counters& counters);
// Code, sentence and remedy.
boost::json::object view_reason(flows::Reason reason);
boost::json::object view_forecast(const flows::Tuple& tuple, const Forecast& forecast);

}  // namespace longhaul::control
