// SPDX-License-Identifier: Apache-2.0
// A path as people and machines read it. Leaves measuring to sweep.h.
#pragma once
#include <boost/json.hpp>
#include <ostream>

#include "tools/probe/sweep.h"

namespace longhaul::probe {

boost::json::object to_json(const Path& path);
void print(const Path& path, std::ostream& out);
// How each link's capacity, delay and loss went over several measurements.
void print_over_time(const std::vector<Path>& paths, const std::vector<std::string>& times,
                     std::ostream& out);

}  // namespace longhaul::probe
