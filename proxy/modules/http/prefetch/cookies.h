// SPDX-License-Identifier: Apache-2.0
// Predicts the cookies that a browser sends after a response that sets some (RFC 6265, section 5). If that
// depends on the browser's cookie store, there is no prediction.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "proxy/modules/http/caching.h"

namespace longhaul::http {

// Limits for a prefetch: as much as common servers accept in one field, and more than browsers store for a
// site.
inline constexpr std::size_t kMostCookieBytes = 8 * 1024, kMostCookies = 200;

// All Cookie fields in one line: HTTP/2 may split them (RFC 9113, section 8.2.3).
std::string cookies_of(const Fields& request);
// The approximate size of cookies_of().
std::size_t cookie_bytes(const Fields& request);

// One "name=value" each, valid for all paths of the page's server. Returns nullopt if the cookies cannot be
// predicted, or if there are too many.
std::optional<std::vector<std::string>> cookies_after(const RequestHead& page, const ResponseHead& response, bool is_secure,
                                                      Seconds wall);

}  // namespace longhaul::http
