// SPDX-License-Identifier: Apache-2.0
// Formats the control API's responses for the terminal. The fields are described in proxy/control/README.md;
// a missing field throws, and steer.cc reports it.
#pragma once
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <iosfwd>

namespace longhaul::cli {

void show_status(const boost::json::value& status, std::ostream& out);
void show_flows(const boost::json::array& flows, std::uint64_t live, std::ostream& out);
void show_why(const boost::json::value& why, std::ostream& out);
void show_features(const boost::json::value& features, std::ostream& out);
void show_changed(const boost::json::value& answer, std::ostream& out);
void show_cleared(const boost::json::value& answer, std::ostream& out);
void show_cleared_objects(const boost::json::value& answer, std::ostream& out);
void show_reloaded(const boost::json::value& answer, std::ostream& out);
void show_rules(const boost::json::value& intercept, std::ostream& out);

}  // namespace longhaul::cli
