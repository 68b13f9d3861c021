// SPDX-License-Identifier: Apache-2.0
// Which HTTP/1 requests may be sent on a connection that was made before they were known.
#pragma once
#include "proxy/modules/connect_ahead.h"

namespace longhaul::http {

// Whole requests without content, GET or HEAD, and perhaps the beginning of one more (RFC 9110,
// section 9.2.2). None that authenticates the connection: a challenge belongs to one connection, and a ticket
// may be used once.
bool may_be_repeated(Bytes said);
// Any response except 408, with which a server closes a connection that was idle for too long (RFC 9110,
// section 15.5.9).
bool is_response(Bytes first);

inline constexpr modules::ConnectAhead kConnectAhead{
    .feature = "http.connect_ahead", .may_repeat = may_be_repeated, .is_answer = is_response};

}  // namespace longhaul::http
