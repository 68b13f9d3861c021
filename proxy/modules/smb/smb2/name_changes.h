// SPDX-License-Identifier: Apache-2.0
// Counts requests of this connection that may have changed names of a tree, or their directory entries: a
// listing is void if the count has changed since.
#pragma once
#include <map>
#include <utility>

#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::smb2 {

// Whether a request may add or remove names, or change their entries.
bool may_change_names(const Message& message, const Changes& changes, Connection& connection);

class NameChanges {
 public:
  void changed(SessionId session, TreeId tree);
  std::uint64_t in(SessionId session, TreeId tree) const;

  // Changes of further trees count for all.
  static constexpr std::size_t kMostTrees = Trees::kMost;

 private:
  std::map<std::pair<SessionId, TreeId>, std::uint64_t> changes_;
  std::uint64_t others_ = 0;
};

}  // namespace longhaul::smb::smb2
