// SPDX-License-Identifier: Apache-2.0
// Numbers as a user types them: rates, times, shares, sizes. Leaves which option takes which to settings.h.
#pragma once
#include <boost/system/result.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace longhaul::wan {

// The error is a sentence for the user.
template <class T>
using Parsed = boost::system::result<T, std::string>;

// Bits per second: "51.84mbit", "64kbit", "1gbit", "9600bit"; powers of 1000. "unlimited" is 0.
Parsed<std::uint64_t> parse_rate(std::string_view text);
// "50ms", "1.5s", "300us", "10ns", "0".
Parsed<std::chrono::nanoseconds> parse_duration(std::string_view text);
// 0 to 1: "0.01", or "1%".
Parsed<double> parse_share(std::string_view text);
// Bytes: "65536", "64KiB", "1MiB", "64kB" (1000).
Parsed<std::uint64_t> parse_bytes(std::string_view text);

// A leading number and what follows it; for those who build further units.
struct Quantity {
  double number;
  std::string_view unit;
};
Parsed<Quantity> parse_quantity(std::string_view text);

}  // namespace longhaul::wan
