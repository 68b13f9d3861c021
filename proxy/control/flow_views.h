// SPDX-License-Identifier: Apache-2.0
// Flows as JSON: live ones, ended ones, and those that are only asked for. Names and units of the fields are
// the API's contract (README.md in this folder).
#pragma once
#include <boost/json/object.hpp>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/control/controlled.h"

namespace longhaul::control {

using SteadyTime = std::chrono::steady_clock::time_point;

// The properties of a link that are shown for its flows.
class LinkFacts {
 public:
  explicit LinkFacts(const Status& status);
  struct Facts {
    std::string peer;
    std::string carrier;  // empty: none now
    std::chrono::microseconds rtt;
  };
  const Facts* of(std::string_view peer) const;  // null: no such link

 private:
  std::vector<Facts> by_peer_;
};

boost::json::object view(const flows::FlowBytes& bytes);
boost::json::object view(const flows::FlowRecord& flow, const LinkFacts& links, SteadyTime now);
boost::json::object view(const flows::FlowTable::Ended& flow);
// Of a flow's module, or of a module's flows together.
boost::json::object view_counters(const modules::Counters& counters);
// Code, sentence and remedy.
boost::json::object view_reason(flows::Reason reason);
boost::json::object view_forecast(const flows::Tuple& tuple, const Forecast& forecast);

}  // namespace longhaul::control
