// SPDX-License-Identifier: Apache-2.0
// The history as JSON text, written without a tree: a day of minutes takes a hundred kilobytes.
#pragma once
#include <string>

#include "proxy/control/history.h"

namespace longhaul::control {

// {"step_s", "from_s", "slots": [[lan_in, lan_out, wan_in, wan_out, most_flows], …]}: intervals that begin at
// `since` (Unix time) or later, the newest last; null where no daemon was running.
std::string view_history(const History::Series& series, std::uint64_t since);

}  // namespace longhaul::control
