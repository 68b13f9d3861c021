// SPDX-License-Identifier: Apache-2.0
// Makes the request of a prefetch from the request for its page, and decides whether a client's request
// equals it: only then would the server have given the client the same response.
#pragma once
#include <optional>
#include <string>

#include "proxy/modules/http/caching.h"

namespace longhaul::http {

// Fields of a request besides its cookies, which HTTP/2 splits: a page with more leads to no prefetch, and a
// request with twice as many equals none, since waiting requests are compared again and again.
inline constexpr std::size_t kMostPageFields = 64;
// The head of a prefetch, which the near side keeps for each object. A page with a longer one leads to none.
inline constexpr std::size_t kMostAskedBytes = 16 * 1024;

// Whether the request is a browser's first for a page to display; requests for its objects follow.
bool may_lead_to_prefetch(const RequestHead& page);
// Whether the response is a page that can be parsed.
bool is_page_to_read(const ResponseHead& response);
// Whether the connection, not the request, is authenticated: equal requests may then get different responses.
bool authenticates_connection(const Fields& fields);

// The request for the page's objects, still with the page's target. Returns nullopt if the browser's cookies
// cannot be predicted, or if the request is too long.
std::optional<RequestHead> asked_for_page(const RequestHead& page, const ResponseHead& response, std::string_view scheme,
                                          Seconds wall);

// Whether the client's request equals the prefetch's, apart from the target and the fields that differ in any
// case. Fields in the response's Vary are compared in addition (caching.h, varies_alike).
bool is_same_asked(const RequestHead& asked, const RequestHead& request);

// The heads in HTTP/1 syntax.
std::string head_text(const RequestHead& request);
std::string head_text(const ResponseHead& response);

}  // namespace longhaul::http
