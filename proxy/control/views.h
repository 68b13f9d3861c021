// SPDX-License-Identifier: Apache-2.0
// The daemon's state as JSON, one function for each thing that can be asked. Names and units of the fields
// are the API's contract (README.md in this folder).
#pragma once
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <optional>

#include "proxy/control/controlled.h"

namespace longhaul::control {

using SteadyTime = std::chrono::steady_clock::time_point;

// Round-trip times of the links, for flows that cross them.
class RoundTrips {
 public:
  explicit RoundTrips(const Status& status);
  std::optional<std::chrono::microseconds> to(std::string_view peer) const;

 private:
  std::vector<std::pair<std::string, std::chrono::microseconds>> by_peer_;
};

boost::json::object view(const config::Features& features);
boost::json::object view(const flows::FlowBytes& bytes);
boost::json::object view(const link::LinkStatus& link);
boost::json::object view(const flows::FlowRecord& flow, const RoundTrips& round_trips, SteadyTime now);
boost::json::object view(const flows::FlowTable::Ended& flow);
boost::json::object view_status(const Status& status, const flows::FlowTable& flows,
                                const config::Features& features);

// Code, sentence and remedy.
boost::json::object view_reason(flows::Reason reason);
boost::json::object view_forecast(const flows::Tuple& tuple, const Forecast& forecast);

std::string_view to_text(InterceptState state);
std::string_view to_text(link::LinkState state);

}  // namespace longhaul::control
