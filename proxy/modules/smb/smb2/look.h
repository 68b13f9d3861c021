// SPDX-License-Identifier: Apache-2.0
// Compounds that open a file only to query it: CREATE, QUERY_INFOs and CLOSE in one message, as Linux sends
// before it opens a file. Such a look can be answered from a file that was opened ahead (near_opens.h), if
// the same queries were made about it. Pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "proxy/modules/smb/smb2/connection.h"
#include "proxy/modules/smb/smb2/plain_open.h"

namespace longhaul::smb::smb2 {

// The open and the queries of a look. Returns nullopt if the message is not one, or if the response could
// depend on more than the file.
std::optional<PlainOpen> look_in(const Message& message);

// The response to the look in `message`. `created`: the body of the response to its CREATE, sent for an open
// with more access; `answers`: what the server answered to its queries, as many, in order.
Slice response_to_look(const Message& message, Bytes created, const std::vector<Slice>& answers);

}  // namespace longhaul::smb::smb2
