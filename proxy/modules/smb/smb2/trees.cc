// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/trees.h"

namespace longhaul::smb::smb2 {

const Tree* Trees::find(SessionId session, TreeId id) const {
  const auto found = trees_.find({session, id});
  return found == trees_.end() ? nullptr : &found->second;
}

bool Trees::connected(SessionId session, TreeId id, const Tree& tree) {
  if (trees_.size() >= kMost) return false;
  trees_.insert_or_assign({session, id}, tree);
  return true;
}

void Trees::session_ended(SessionId session) {
  trees_.erase(trees_.lower_bound({session, 0}), trees_.upper_bound({session, ~TreeId{0}}));
}

}  // namespace longhaul::smb::smb2
