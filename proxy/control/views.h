// SPDX-License-Identifier: Apache-2.0
// The daemon's state as JSON, one function per query. Names and units of the fields are the API's contract
// (README.md in this folder).
#pragma once
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <optional>

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

boost::json::object view(const config::Features& features);
boost::json::object view(const flows::FlowBytes& bytes);
boost::json::object view(const link::BlockCounters& blocks);
boost::json::object view(const link::LinkStatus& link);
boost::json::object view(const Cleared& cleared);
boost::json::object view(const flows::FlowRecord& flow, const LinkFacts& links, SteadyTime now);
boost::json::object view(const flows::FlowTable::Ended& flow);
boost::json::object view_status(const Status& status, const flows::FlowTable& flows,
                                const config::Features& features, const config::Features& configured);

boost::json::object view_lost_writes(const Status& status);
// Files of this client at this server with lost writes that have not been reported yet, and the last reports.
boost::json::array view_lost_files(const Status& status, const modules::Ends& ends);
boost::json::array view_told_files(const Status& status, const modules::Ends& ends);
// Code, sentence and remedy.
boost::json::object view_reason(flows::Reason reason);
boost::json::object view_forecast(const flows::Tuple& tuple, const Forecast& forecast);

std::string_view to_text(InterceptState state);
std::string_view to_text(FailClosed state);
std::string_view to_text(link::LinkState state);
std::string_view to_text(link::UdpState state);

}  // namespace longhaul::control
