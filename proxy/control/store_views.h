// SPDX-License-Identifier: Apache-2.0
// The dictionary and the stored responses on disk as JSON, and the result of `longhaul clear-cache`. Names
// and units of the fields are the API's contract (README.md in this folder).
#pragma once
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <optional>

#include "proxy/control/controlled.h"

namespace longhaul::control {

// JSON null if there is none.
boost::json::value view(const std::optional<cache::StoreCounters>& disk);
boost::json::value view(const std::optional<cache::ObjectCounters>& objects);
boost::json::object view(const Cleared& cleared);

}  // namespace longhaul::control
