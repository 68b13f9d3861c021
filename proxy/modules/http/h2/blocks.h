// SPDX-License-Identifier: Apache-2.0
// Converts header blocks of HTTP/2 to the requests and responses of caching.h, and cached responses to
// blocks.
#pragma once
#include <optional>

#include "proxy/modules/http/caching.h"

namespace longhaul::http::h2 {

// `scheme`: of the connection, with "://". Returns nullopt if it is not an ordinary request to this server,
// or names its server in two different ways.
std::optional<RequestHead> request_of(const Fields& block, std::string_view scheme);
std::optional<ResponseHead> response_of(const Fields& block);  // also 1xx
Fields block_of(const ResponseHead& response);
Fields block_of(const RequestHead& request, std::string_view scheme);

}  // namespace longhaul::http::h2
