// SPDX-License-Identifier: Apache-2.0
// Rates and sizes as text. Decimal units for rates (a mbit is 1,000,000 bits, as in line speeds), binary
// units for sizes (a MiB is 1,048,576 bytes, as in memory).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace longhaul::config {

// "64kbit", "1.544mbit", "51.84mbit", "1gbit", "9600bit": bits per second. Returns nullopt if the text is not
// a rate, is zero, has a fraction of a bit, or is too large.
std::optional<std::uint64_t> parse_rate(std::string_view text);

// "65535", "64KiB", "512MiB", "1.5GiB": bytes. Returns nullopt if the text is not a size, or is too large.
std::optional<std::uint64_t> parse_size(std::string_view text);
// The probable meaning of a size with another spelling of its unit ("1GB", "512M"); empty if unknown.
std::string meant_size(std::string_view text);

// The shortest text that parses back to the same number.
std::string rate_to_text(std::uint64_t bits_per_second);
std::string size_to_text(std::uint64_t bytes);

}  // namespace longhaul::config
