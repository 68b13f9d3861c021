// SPDX-License-Identifier: Apache-2.0
// Which opens have requests under way that change their data: until those are answered, nobody can say
// whether what is read lies before or after the change.
#pragma once
#include <unordered_map>
#include <vector>

#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::smb2 {

class Unsettled {
 public:
  void begin(const Changes& changes) {
    for (const Change& change : changes) {
      if (change.kind != Change::Kind::voided) continue;
      opens_by_[change.by].push_back(change.open->key);
      ++requests_of_[change.open->key];
    }
  }
  void end(MessageId answered) {
    auto found = opens_by_.find(answered);
    if (found == opens_by_.end()) return;
    for (const OpenKey& open : found->second)
      if (auto requests = requests_of_.find(open); requests != requests_of_.end() && --requests->second == 0)
        requests_of_.erase(requests);
    opens_by_.erase(found);
  }
  bool contains(const OpenKey& open) const { return requests_of_.contains(open); }

 private:
  std::unordered_map<MessageId, std::vector<OpenKey>> opens_by_;
  std::unordered_map<OpenKey, std::size_t, OpenKeyHash> requests_of_;
};

}  // namespace longhaul::smb::smb2
