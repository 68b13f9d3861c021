// SPDX-License-Identifier: Apache-2.0
// Makes messages of several elements, and replaces responses by errors, in single responses and in compounds
// ([MS-SMB2] section 3.3.4.1.3). The callers decide which; they never pass signed messages.
#pragma once
#include <optional>
#include <span>

#include "proxy/modules/smb/smb2/build.h"
#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::smb2 {

struct CompoundPart {
  Header header;
  Bytes body;
};
using CompoundParts = boost::container::small_vector<CompoundPart, 3>;
// A frame of these elements, at least one; their ends are recalculated.
Slice build_compound(std::span<const CompoundPart> parts);
// The body of an ERROR response (2.2.2) that contains only its status.
Bytes error_body();

// A request of a compound as a separate message, with the session, tree and file that it refers to.
std::optional<Message> alone(const Element& element, const Pending& request);

struct NewStatus {
  const Element* element = nullptr;  // of the changed message
  Status status = Status::success;   // an error
};

// The frame of a response with these elements replaced by ERROR responses (2.2.2), ids and credits unchanged.
Slice with_statuses(const Message& message, std::span<const NewStatus> changed);

}  // namespace longhaul::smb::smb2
