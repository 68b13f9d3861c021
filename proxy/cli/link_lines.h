// SPDX-License-Identifier: Apache-2.0
// What `longhaul status` says of one link's carrier and of what is saved on it, a line each.
#pragma once
#include <boost/json/value.hpp>
#include <cstdint>
#include <string>

namespace longhaul::cli {

// The state of UDP.
std::string udp_line(const boost::json::value& link);
// One of links[].paths: what it carries, and why.
std::string path_line(const boost::json::value& path);
// Deduplication and compression.
std::string unlike_modules_line(const boost::json::value& link);  // empty: all are alike
std::string reduction_line(const boost::json::value& reduction);
// Bytes before and after each stage, of a link or a flow.
std::string stages(const boost::json::value& bytes);
// "12.3 %", or "-" of nothing.
std::string percent(std::uint64_t part, std::uint64_t whole);

}  // namespace longhaul::cli
