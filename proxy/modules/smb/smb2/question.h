// SPDX-License-Identifier: Apache-2.0
// A QUERY_INFO without its file, as a short key: the halves' id of a query that the client repeats.
#pragma once
#include <optional>
#include <vector>

#include "codecs/slice.h"
#include "proxy/modules/smb/smb2/records_query.h"

namespace longhaul::smb::smb2 {

// Equal for all requests with the same response of the server: for a class with responses of fixed size, a
// larger buffer does not matter. Returns nullopt if the request has input (lists of extended attributes,
// quotas), which is rare.
std::optional<Slice> question_of(const QueryInfoRequest& request);
std::optional<QueryInfoRequest> request_of(Bytes question);

// Classes of information about a file with the same answer through each of its handles, allowed through one
// that reads attributes ([MS-SMB2] section 3.3.5.20.1). Names, access, position and mode belong to the
// handle.
bool is_of_the_file(std::uint8_t info_class);

// Several keys in a message to the twin; all have the same length.
inline constexpr std::size_t kQuestionKeyBytes = 14;
Slice joined(const std::vector<Slice>& questions);
std::vector<Slice> questions_in(Bytes joined);

}  // namespace longhaul::smb::smb2
