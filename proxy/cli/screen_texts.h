// SPDX-License-Identifier: Apache-2.0
// Formats parts of the daemon's responses for the screens.
#pragma once
#include <boost/json/value.hpp>
#include <iosfwd>
#include <string>
#include <string_view>

namespace longhaul::cli {

std::string rtt(const boost::json::value& milliseconds);  // "-" for null, also in the functions below
std::string age(const boost::json::value& seconds);
std::string bytes_line(const boost::json::value& bytes);
std::string features_line(const boost::json::value& features);
std::string preset_words(const boost::json::value& preset);

constexpr std::string_view kNothingYet = "no activity yet";
// The counters that are not zero.
std::string counters_line(const boost::json::value& counters);

// Of `disk_objects`: how much is stored, and whether the disk is read.
std::string objects_use(const boost::json::value& objects);
bool objects_answer(const boost::json::value& objects);

// Writes a title and its content, wrapped.
void line(std::ostream& out, std::string_view title, std::string_view content);

}  // namespace longhaul::cli
