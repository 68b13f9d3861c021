// SPDX-License-Identifier: Apache-2.0
// Cache-Control and the dates of HTTP: what RFC 9111 decides by (caching.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "proxy/modules/http/head.h"

namespace longhaul::http {

using Seconds = std::int64_t;

// Cache-Control (section 5.2), and Pragma where that is absent.
struct Directives {
  bool no_store = false, no_cache = false, is_private = false, is_public = false;
  bool must_understand = false, must_revalidate = false;
  std::optional<Seconds> max_age, shared_max_age, min_fresh;
  bool is_for_all() const {
    return is_public || must_revalidate || shared_max_age;
  }  // with credentials, too (section 3.5)
};
Directives directives_of(const Fields& fields);

// A date of HTTP in seconds since 1970 (RFC 9110, section 5.6.7); nothing if it is none.
std::optional<Seconds> date_of(std::string_view text);

inline constexpr Seconds kMostSeconds = 0x7FFFFFFF;  // section 1.2.2
bool is_number(std::string_view text);               // of digits alone
// Something that is no number counts as 0: it is not fresh.
Seconds seconds_of(std::string_view text);

}  // namespace longhaul::http
