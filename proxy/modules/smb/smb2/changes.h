// SPDX-License-Identifier: Apache-2.0
// What a message changes of the opens of a connection, as connection.h reports it to all parts.
#pragma once
#include <vector>

#include "proxy/modules/smb/smb2/open.h"

namespace longhaul::smb::smb2 {

// The effects of a message, in the order of its elements.
struct Change {
  enum class Kind : std::uint8_t {
    opened,  // `open`
    closed,  // the server has closed it, or its tree or session is gone; `open` is valid as long as the
             // Outcome
    broken,  // its caching was reduced, or is being reduced
    voided,  // requests: data read before from any open of `file` is void (write, lock, set
             // info, ioctl, truncation); one for each request
  };
  Kind kind;
  Open* open = nullptr;         // not of `voided`
  MessageId by = kUnsolicited;  // the request that did it, or that was answered
  FileGroupRef file;            // of `voided`
};
using Changes = std::vector<Change>;

}  // namespace longhaul::smb::smb2
