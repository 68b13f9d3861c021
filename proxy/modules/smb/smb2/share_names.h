// SPDX-License-Identifier: Apache-2.0
// Which share each tree of a connection is, by its name; and what of an open names the file in records of
// lost writes (lost_writes.h). Bounded: trees beyond that have no name.
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
