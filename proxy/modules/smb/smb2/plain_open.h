// SPDX-License-Identifier: Apache-2.0
// CREATEs that may be made before the client asks for them: opens of files that are there, for reading
// alone, with nothing in them that only the server can judge for each name. What such a request says is
// kept in two parts, its name and all the rest, so that the same can be asked of another name. Which names,
// and when, is decided in far_opens.h.
#pragma once
#include <optional>
#include <string>

#include "codecs/slice.h"
#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::smb2 {

struct PlainOpen {
  std::string how;   // access, sharing, options, contexts, in a form of our own
  std::string name;  // UTF-16LE, as the client writes it
  bool operator==(const PlainOpen&) const = default;

  std::string_view folder() const;  // up to its last backslash, that included; may be empty
  std::string_view last() const;    // the rest
};

// None if it is not plain, or its header has special options. Oplocks and leases requested by the client are
// not plain: only the client can choose the key of a lease.
std::optional<PlainOpen> plain_open(const Header& header, const CreateRequest& request);
// Borrows from `open`. None: invalid.
std::optional<CreateRequest> request_of(const PlainOpen& open);

// For messages to the twin.
Slice encode(const PlainOpen& open);
std::optional<PlainOpen> decode_plain_open(Bytes bytes);

// [MS-FSA] 2.1.5.1.2: an open that breaks no other client's oplock and conflicts with no share mode.
bool only_looks(const Open& opening);
// A request after which an earlier open may be of another file, or forbidden for this user.
bool unsettles_names(const Message& message);

}  // namespace longhaul::smb::smb2
