// SPDX-License-Identifier: Apache-2.0
// CLOSEs that are answered before the server has answered them: which are allowed, the response, and those
// still in progress. near_metadata.h answers them.
//
// The server may keep the handle for any time as far as other clients are concerned, because a break informs
// its holder. So a CLOSE may be in progress while the client continues; its next request with that name waits
// at the far half.
#pragma once
#include <optional>

#include "codecs/keyed_hash.h"
#include "proxy/modules/smb/smb2/changes_since.h"
#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::smb2 {

// The handle is cached, and no change of the file through this connection may be unfinished; or the client
// holds a lease under which it could keep its WRITEs and the handle itself, and the server has answered them
// all: then CLOSE could only report an error that such a client does not pass on to programs (decision 0028).
bool may_be_closed_locally(const Open& open, const ChangesSince& since);

// The server's response to a CLOSE with these flags, provided that everything known of the open has not
// changed since it was opened.
CloseResponse closed_as(const Open& open, std::uint16_t flags);

class LocalCloses {
 public:
  void answered(MessageId close, const Open& open) {
    under_way_.emplace(close, Closing{open.file, open.lease});
  }
  // The server has answered it. Returns false if it is not one of these.
  bool finished(MessageId close) { return under_way_.erase(close) != 0; }
  // Whether this message is a break that crossed one of them: the client has closed the file, and the CLOSE
  // is the acknowledgement.
  bool acknowledge(const Message& message, const Connection& connection) const;
  bool empty() const { return under_way_.empty(); }

 private:
  struct Closing {
    FileId file;
    std::optional<LeaseKey> lease;
  };
  KeyedMap<MessageId, Closing> under_way_;
};

}  // namespace longhaul::smb::smb2
