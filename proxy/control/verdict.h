// SPDX-License-Identifier: Apache-2.0
// The verdict at the top of every report: problems with their remedies, and the savings. Pure.
#pragma once
#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "proxy/control/controlled.h"

namespace longhaul::control {

struct Problem {
  std::string sentence, remedy;
  bool is_serious = false;  // traffic is refused, unprotected or not optimised, or data was lost
};

// Serious problems first.
std::vector<Problem> problems(const Status& status, const config::Features& features);

boost::json::object view_verdict(const Status& status, const config::Features& features,
                                 const flows::FlowBytes& bytes);

}  // namespace longhaul::control
