// SPDX-License-Identifier: Apache-2.0
// Header blocks of HTTP/2 as the requests and responses that caching.h knows, and answers of the cache as
// blocks.
#pragma once
#include <optional>

#include "proxy/modules/http/caching.h"

namespace longhaul::http::h2 {

// `scheme`: of the connection, with "://". Nothing: it is not an ordinary request to this server, or its
// server has two names.
std::optional<RequestHead> request_of(const Fields& block, std::string_view scheme);
std::optional<ResponseHead> response_of(const Fields& block);  // also 1xx
Fields block_of(const ResponseHead& response);
Fields block_of(const RequestHead& request, std::string_view scheme);

}  // namespace longhaul::http::h2
