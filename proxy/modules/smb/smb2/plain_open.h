// SPDX-License-Identifier: Apache-2.0
// CREATEs that may be sent before the client requests them: opens of existing files, only for reading,
// without anything that only the server can judge for each name. Such a request is split into its name and
// all other properties, so that the same can be requested for another name. far_opens.h decides which names,
// and when.
#pragma once
#include <optional>
#include <string>

#include "codecs/slice.h"
#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::smb2 {

struct PlainOpen {
  std::string how;   // access, sharing, options, contexts, in our own encoding
  std::string name;  // UTF-16LE, as in the client's request
  // Of a compound that opens the file only for these queries (look.h; question.h: joined()).
  std::optional<std::string> queries = std::nullopt;
  bool operator==(const PlainOpen&) const = default;

  bool is_look() const { return queries.has_value(); }
  bool is_like(const PlainOpen& other) const { return how == other.how && queries == other.queries; }

  std::string_view folder() const;  // up to its last backslash, inclusive; may be empty
  std::string_view last() const;    // the rest
};

// Returns nullopt if it is not plain, or if its header has special options. Opens with oplocks or leases
// requested by the client are not plain: only the client can choose the key of a lease.
std::optional<PlainOpen> plain_open(const Header& header, const CreateRequest& request);
// The same for a CREATE that reads attributes only, so that it meets no oplock: the beginning of a look.
std::optional<PlainOpen> looking_open(const Header& header, const CreateRequest& request);
// Borrows from `open`. Returns nullopt if it is invalid.
std::optional<CreateRequest> request_of(const PlainOpen& open);

// For messages to the twin.
Slice encode(const PlainOpen& open);
std::optional<PlainOpen> decode_plain_open(Bytes bytes);

// [MS-FSA] 2.1.5.1.2: whether an open breaks no other client's oplock and conflicts with no share mode.
bool only_looks(const Open& opening);
// Whether after this request an earlier open may refer to another file, or be forbidden for this user.
bool unsettles_names(const Message& message);

}  // namespace longhaul::smb::smb2
