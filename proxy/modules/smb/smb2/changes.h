// SPDX-License-Identifier: Apache-2.0
// What a message changes in the opens of a connection, as reported by connection.h to all parts.
#pragma once
#include <vector>

#include "proxy/modules/smb/smb2/open.h"

namespace longhaul::smb::smb2 {

// The effects of a message, in the order of its elements.
struct Change {
  enum class Kind : std::uint8_t {
    opened,  // `open`
    closed,  // the server has closed it, or its tree or session has ended; `open` is valid as long as the
             // Outcome
    broken,  // its caching was reduced, or is being reduced
    voided,  // requests: data read before from any open of `file` is void (write, lock, set info, ioctl,
             // truncation); one for each request
  };
  Kind kind;
  Open* open = nullptr;         // null for `voided`
  MessageId by = kUnsolicited;  // the request that caused it, or that was answered
  FileGroupRef file;            // for `voided`
};
using Changes = std::vector<Change>;

}  // namespace longhaul::smb::smb2
