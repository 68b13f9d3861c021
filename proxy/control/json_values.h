// SPDX-License-Identifier: Apache-2.0
// Values of the API that may be absent: null instead of an empty text, a zero, or an unmeasured round trip.
#pragma once
#include <boost/json/value.hpp>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace longhaul::control {

inline boost::json::value text_or_null(std::string_view text) {
  return text.empty() ? boost::json::value() : boost::json::value(text);
}

inline boost::json::value number_or_null(std::uint64_t number) {
  return number == 0 ? boost::json::value() : boost::json::value(number);
}

template <class Duration>
double milliseconds(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

inline boost::json::value rtt_or_null(std::chrono::microseconds rtt) {
  return rtt.count() == 0 ? boost::json::value() : boost::json::value(milliseconds(rtt));
}

}  // namespace longhaul::control
