// SPDX-License-Identifier: Apache-2.0
// A path as people and machines read it. Leaves measuring to sweep.h.
#pragma once
#include <boost/json.hpp>
#include <ostream>

#include "tools/probe/sweep.h"

namespace longhaul::probe {

boost::json::object to_json(const Path& path);
void print(const Path& path, std::ostream& out);
std::string where_text(const std::vector<Hop>& hops, unsigned limit);  // an address, or "here"

}  // namespace longhaul::probe
