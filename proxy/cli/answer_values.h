// SPDX-License-Identifier: Apache-2.0
// Converts values of the daemon's responses for the screens.
#pragma once
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <string>

namespace longhaul::cli {

inline std::uint64_t number(const boost::json::value& value) { return value.to_number<std::uint64_t>(); }

// Text without its quotes; "-" for null.
inline std::string text(const boost::json::value& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return std::string(value.get_string());
  return boost::json::serialize(value);
}

}  // namespace longhaul::cli
