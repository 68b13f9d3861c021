// SPDX-License-Identifier: Apache-2.0
// The cookies that a browser sends next, after a response that sets some (RFC 6265, section 5), where that is plain: whatever
// it would take a browser's store of cookies to know, this does not say.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "proxy/modules/http/caching.h"

namespace longhaul::http {

// What is sent as one or more Cookie fields, in one line: HTTP/2 may split it (RFC 9113, section 8.2.3).
std::string cookies_of(const Fields& request);

// "name=value" each, for anything at the server of the page. Nothing: not for all of it alike, or not to be told.
std::optional<std::vector<std::string>> cookies_after(const RequestHead& page, const ResponseHead& response, bool is_secure,
                                                      Seconds wall);

}  // namespace longhaul::http
