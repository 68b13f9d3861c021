// SPDX-License-Identifier: Apache-2.0
// A QUERY_INFO without its file, as a short key: what the halves call a question that the client makes again
// and again.
#pragma once
#include <optional>
#include <vector>

#include "codecs/slice.h"
#include "proxy/modules/smb/smb2/records_query.h"

namespace longhaul::smb::smb2 {

// The same for all requests to which the server's answer is the same: where a class has answers of one size,
// more room than that makes no other question. None if the request has input (lists of extended attributes,
// quotas): that is asked seldom.
std::optional<Slice> question_of(const QueryInfoRequest& request);
std::optional<QueryInfoRequest> request_of(Bytes question);

// Several of them in a message to the twin; all are of one length.
inline constexpr std::size_t kQuestionKeyBytes = 14;
Slice joined(const std::vector<Slice>& questions);
std::vector<Slice> questions_in(Bytes joined);

}  // namespace longhaul::smb::smb2
