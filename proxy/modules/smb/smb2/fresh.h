// SPDX-License-Identifier: Apache-2.0
// Which opens may have data here, or under way, since data was last void: only these are affected by another
// change. So earlier READs have paid for the cost of a change, however often the file is open.
#pragma once
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::smb2 {

class Fresh {
 public:
  // Data of this open was requested, or has arrived.
  void learnt(const Open& open) {
    FileGroupRef& group = group_of_[open.key];
    if (group == open.group) return;
    if (group) leave(*group, open.key);
    group = open.group;
    if (group->is_any()) any_ = group.get();
    of_group_[group.get()].insert(open.key);
  }
  // The open is closed, or its own data is void.
  void forget(const OpenKey& open) {
    const auto found = group_of_.find(open);
    if (found == group_of_.end()) return;
    leave(*found->second, open);
    group_of_.erase(found);
  }
  // The opens affected by a change of this file.
  std::vector<OpenKey> take(const FileGroup& changed) {
    std::vector<OpenKey> opens;
    if (changed.is_any()) {
      for (const auto& [open, group] : group_of_) opens.push_back(open);
      group_of_.clear();
      of_group_.clear();
      return opens;
    }
    for (const FileGroup* group : {&changed, any_})
      if (const auto found = of_group_.find(group); found != of_group_.end())
        opens.insert(opens.end(), found->second.begin(), found->second.end());
    for (const OpenKey& open : opens) forget(open);
    return opens;
  }

 private:
  using Keys = std::unordered_set<OpenKey, OpenKeyHash>;
  void leave(const FileGroup& group, const OpenKey& open) {
    const auto opens = of_group_.find(&group);
    if (opens == of_group_.end()) return;
    opens->second.erase(open);
    if (opens->second.empty()) of_group_.erase(opens);
  }

  std::unordered_map<OpenKey, FileGroupRef, OpenKeyHash> group_of_;
  std::unordered_map<const FileGroup*, Keys> of_group_;
  const FileGroup* any_ = nullptr;  // of inexact names
};

}  // namespace longhaul::smb::smb2
