// SPDX-License-Identifier: Apache-2.0
// Which share each tree of a connection is, by its name (as smb2/share_names.h).
#pragma once
#include <string>
#include <unordered_map>

#include "proxy/modules/smb/smb1/connection.h"

namespace longhaul::smb::smb1 {

class ShareNames {
 public:
  void on_request(const Message& request);
  void on_reply(const Message& reply);
  std::u16string of(std::uint16_t tid) const;  // share_of() its UNC path; empty: not known

 private:
  KeyedMap<std::uint16_t, std::u16string> shares_;
  KeyedMap<MessageNumber, std::u16string> connecting_;  // TREE_CONNECTs without an answer
};

}  // namespace longhaul::smb::smb1
