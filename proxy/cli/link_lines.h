// SPDX-License-Identifier: Apache-2.0
// The lines of `longhaul status` about one link's carrier and savings.
#pragma once
#include <boost/json/value.hpp>
#include <cstdint>
#include <string>

namespace longhaul::cli {

// The state of UDP.
std::string udp_line(const boost::json::value& link);
// One of links[].paths: its traffic, and why it is used or not.
std::string path_line(const boost::json::value& path);
// Deduplication and compression.
std::string unlike_modules_line(const boost::json::value& link);  // empty if all are equal
std::string reduction_line(const boost::json::value& reduction);
// Bytes before and after each stage, for a link or a flow.
std::string stages(const boost::json::value& bytes);
// "12.3 %", or "-" if `whole` is zero.
std::string percent(std::uint64_t part, std::uint64_t whole);

}  // namespace longhaul::cli
