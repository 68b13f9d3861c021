// SPDX-License-Identifier: Apache-2.0
// The share name of each tree of a connection. The dialects parse the requests that connect trees. Bounded:
// disconnected trees are dropped for others.
#pragma once
#include <map>
#include <string>
#include <utility>

#include "codecs/keyed_hash.h"
#include "proxy/modules/smb/twin_messages.h"

namespace longhaul::smb {

class ShareNames {
 public:
  // A TREE_CONNECT is sent to the server. `share`: share_of() its UNC path (lost_names.h).
  void connecting(MessageNumber number, std::u16string share) {
    if (connecting_.size() < kMostConnecting)
      connecting_[number] = std::move(share);
    else
      knows_all_ = false;
  }
  // It succeeded. SMB1: `session` is zero; trees belong to the connection.
  void connected(MessageNumber number, std::uint64_t session, std::uint32_t tree) {
    auto share = connecting_.extract(number);
    if (share.empty()) return;
    if (shares_.size() >= kMostShares)
      std::erase_if(shares_, [](const auto& each) { return each.second.is_over; });
    if (shares_.size() < kMostShares || shares_.contains({session, tree}))
      shares_.insert_or_assign({session, tree}, Share{.name = std::move(share.mapped())});
    else
      knows_all_ = false;
  }
  // The name is stored for a while: files are closed with the tree.
  void disconnected(std::uint64_t session, std::uint32_t tree) {
    if (const auto share = shares_.find({session, tree}); share != shares_.end())
      share->second.is_over = true;
  }
  void logged_off(std::uint64_t session) {
    for (auto share = shares_.lower_bound({session, 0});
         share != shares_.end() && share->first.first == session; ++share)
      share->second.is_over = true;
  }
  void refused(MessageNumber number) { connecting_.erase(number); }

  // Returns false if there are, or were, too many trees: some files would be recorded under a wrong name.
  bool knows_all() const { return knows_all_; }
  // Returns an empty string if it is not known.
  std::u16string of(std::uint64_t session, std::uint32_t tree) const {
    const auto share = shares_.find({session, tree});
    return share == shares_.end() ? std::u16string{} : share->second.name;
  }

 private:
  static constexpr std::size_t kMostShares = 4096, kMostConnecting = 64;

  struct Share {
    std::u16string name;
    bool is_over = false;  // disconnected
  };

  KeyedMap<MessageNumber, std::u16string> connecting_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, Share> shares_;
  bool knows_all_ = true;
};

}  // namespace longhaul::smb
