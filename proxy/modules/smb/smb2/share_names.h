// SPDX-License-Identifier: Apache-2.0
// The name of each tree's share in a connection; and the parts of an open that name the file in records of
// lost writes (lost_writes.h). Bounded: further trees have no name.
#pragma once
#include <map>
#include <string>
#include <utility>

#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::smb2 {

class ShareNames {
 public:
  void on_request(const Message& message);
  void on_outcome(const Connection::Outcome& outcome);
  // share_of() its UNC path; empty: not known.
  std::u16string of(SessionId session, TreeId tree) const;
  std::u16string of(const Open& open) const { return of(open.session, open.tree); }

 private:
  std::map<std::pair<SessionId, TreeId>, std::u16string> shares_;
  KeyedMap<MessageId, std::u16string> connecting_;  // TREE_CONNECTs without an answer
};

LostWrites::Use use_of(const Open& open);

}  // namespace longhaul::smb::smb2
