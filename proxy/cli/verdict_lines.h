// SPDX-License-Identifier: Apache-2.0
// The verdict of /v1/status for a terminal: one line with the overall state, the savings and the current
// rates, then one line for each problem with its remedy.
#pragma once
#include <boost/json/value.hpp>
#include <string>

namespace longhaul::cli {

std::string verdict_lines(const boost::json::value& status, bool colour);

std::string share_text(double share);  // "12.3 %"

}  // namespace longhaul::cli
