// SPDX-License-Identifier: Apache-2.0
// The position of an open file ([MS-FSCC] 2.4.35) as the client's READs have moved it, for responses to
// QUERY_INFO. READs that never reached the server, and those that only the far half requested, must not
// affect it.
#pragma once
#include <optional>

#include "codecs/slice.h"
#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::smb2 {

class FilePosition {
 public:
  void set(std::uint64_t position) { position_ = position; }
  // The client has sent a request about the file that may move it.
  void follow(const Message& message, const Pending& request);
  // The response to that query with this position; nullopt: it has none, or the server's is right.
  std::optional<Slice> corrected(const Pending& query, Bytes info) const;

 private:
  std::optional<std::uint64_t> position_;  // nullopt: the server knows it
};

}  // namespace longhaul::smb::smb2
