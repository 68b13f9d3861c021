// SPDX-License-Identifier: Apache-2.0
// The near half's handles opened ahead: a client that repeatedly reads a file's attributes, by an open and a
// close each time, while it holds the file open under a batch oplock, gets handles that the far half has
// opened for it (far_looks.h). Anything that may invalidate such a response makes all of them void.
#pragma once
#include <deque>
#include <unordered_map>

#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/smb1/connection.h"

namespace longhaul::smb::smb1 {

class NearLooks {
 public:
  NearLooks(Outputs& out, Connection& connection) : out_(out), connection_(connection) {}

  // An NT_CREATE of the client, which the connection has recorded. Returns the server's response to an equal
  // one, for this client; nullopt: pass the request on.
  std::optional<Slice> take(TimePoint now, const Message& message);
  // Returns false if it is not such a handle.
  bool pushed(TimePoint now, const Answer& answer, const Slice& attached);
  // No handle opened ahead may be used any more: the far half closes them.
  void drop();
  std::size_t held_bytes() const { return count_ * (kMostRequest + kMostReply); }

 private:
  struct Handle {
    Slice request, reply;
    TimePoint came{};
  };
  // More than the far half ever opens; it sends no larger responses.
  static constexpr std::size_t kMostHandles = 256, kMostRequest = 4096, kMostReply = 1024;

  Outputs& out_;
  Connection& connection_;
  std::unordered_map<OpenKey, std::deque<Handle>, OpenKeyHash> handles_;
  std::size_t count_ = 0;
  std::uint32_t epoch_ = 0;
  bool active_ = false;  // the far half may have opened some in this epoch
};

}  // namespace longhaul::smb::smb1
