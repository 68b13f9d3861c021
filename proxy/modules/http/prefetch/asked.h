// SPDX-License-Identifier: Apache-2.0
// The request of a prefetch, made of the one for the page that it belongs to, and whether a client's request is the same:
// only then the client would have got that response from the server, too.
#pragma once
#include <optional>
#include <string>

#include "proxy/modules/http/caching.h"

namespace longhaul::http {

// Whether a browser asks for a page to show it, and for the first time: what it embeds is then asked for next.
bool may_lead_to_prefetch(const RequestHead& page);
// Whether that is a page, and what it embeds will be asked for as the page was.
bool is_page_to_read(const ResponseHead& response);
// Requests on this connection may be answered by who the connection belongs to, and not by what they say.
bool authenticates_connection(const Fields& fields);

// For anything that the page embeds; the target is still the page's. Nothing: it is not plain what the browser will say.
std::optional<RequestHead> asked_for_page(const RequestHead& page, const ResponseHead& response, std::string_view scheme,
                                          Seconds wall);

// Whether the client's request is that one, but for its target and what says nothing of who asks or what for. What a response
// varies with is compared besides (caching.h, matches).
bool is_same_asked(const RequestHead& asked, const RequestHead& request);

// Their heads as HTTP/1.
std::string head_text(const RequestHead& request);
std::string head_text(const ResponseHead& response);

}  // namespace longhaul::http
