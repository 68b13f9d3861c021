// SPDX-License-Identifier: Apache-2.0
// The trees that the sessions of a connection are connected to, by session and tree id.
#pragma once
#include <map>
#include <utility>

#include "proxy/modules/smb/smb2/types.h"

namespace longhaul::smb::smb2 {

struct Tree {
  ShareType type = ShareType::disk;
  std::uint32_t flags = 0;
  std::uint32_t capabilities = 0;
};

class Trees {
 public:
  const Tree* find(SessionId session, TreeId id) const;
  // The server has connected it. Returns false if there are too many, so that it is not tracked.
  bool connected(SessionId session, TreeId id, const Tree& tree);
  void disconnected(SessionId session, TreeId id) { trees_.erase({session, id}); }
  void session_ended(SessionId session);

  static constexpr std::size_t kMost = 1 << 14;

 private:
  std::map<std::pair<SessionId, TreeId>, Tree> trees_;
};

}  // namespace longhaul::smb::smb2
