// SPDX-License-Identifier: Apache-2.0
// A QUERY_INFO without its file, as a short key: what the halves call a question that the client makes again
// and again.
#pragma once
#include <optional>

#include "codecs/slice.h"
#include "proxy/modules/smb/smb2/records_query.h"

namespace longhaul::smb::smb2 {

// None if the request has input (lists of extended attributes, quotas): that is asked seldom.
std::optional<Slice> question_of(const QueryInfoRequest& request);
std::optional<QueryInfoRequest> request_of(Bytes question);

}  // namespace longhaul::smb::smb2
