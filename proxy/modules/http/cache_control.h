// SPDX-License-Identifier: Apache-2.0
// Cache-Control and the dates of HTTP, on which the decisions of RFC 9111 depend (caching.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "proxy/modules/http/head.h"

namespace longhaul::http {

using Seconds = std::int64_t;

// Cache-Control (section 5.2), or Pragma if there is none.
struct Directives {
  bool no_store = false, no_cache = false, is_private = false, is_public = false;
  bool must_understand = false, must_revalidate = false;
  std::optional<Seconds> max_age, shared_max_age, min_fresh;
  bool is_for_all() const {
    return is_public || must_revalidate || shared_max_age;
  }  // even with credentials (section 3.5)
};
Directives directives_of(const Fields& fields);

// A date of HTTP in seconds since 1970 (RFC 9110, section 5.6.7); nullopt if it is invalid.
std::optional<Seconds> date_of(std::string_view text);

inline constexpr Seconds kMostSeconds = 0x7FFFFFFF;  // section 1.2.2
bool is_number(std::string_view text);               // only digits
// An invalid number counts as 0: such a response is not fresh.
Seconds seconds_of(std::string_view text);

}  // namespace longhaul::http
