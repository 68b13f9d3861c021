// SPDX-License-Identifier: Apache-2.0
// The daemon's state as JSON: features, links, lost writes and the whole status. flow_views.h has flows,
// store_views.h the stores on disk. Names and units of the fields are the API's contract (README.md in this
// folder).
#pragma once
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "proxy/control/controlled.h"

namespace longhaul::control {

boost::json::object view(const config::Features& features);
boost::json::object view(const link::BlockCounters& blocks);
boost::json::object view(const link::LinkStatus& link);
boost::json::object view_status(const Status& status, const flows::FlowTable& flows,
                                const config::Features& features, const config::Features& configured);

boost::json::object view_lost_writes(const Status& status);
// Files of this client at this server with lost writes that have not been reported yet, and the last reports.
boost::json::array view_lost_files(const Status& status, const modules::Ends& ends);
boost::json::array view_told_files(const Status& status, const modules::Ends& ends);

std::string_view to_text(InterceptState state);
std::string_view to_text(FailClosed state);
std::string_view to_text(link::LinkState state);
std::string_view to_text(link::UdpState state);

}  // namespace longhaul::control
