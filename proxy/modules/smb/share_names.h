// SPDX-License-Identifier: Apache-2.0
// The name of the share that each tree of a connection belongs to. The dialects parse the requests that
// connect trees. Bounded: further trees have no name.
#pragma once
#include <map>
#include <string>
#include <utility>

#include "codecs/keyed_hash.h"
#include "proxy/modules/smb/twin_messages.h"

namespace longhaul::smb {

class ShareNames {
 public:
  // A TREE_CONNECT goes to the server. `share`: share_of() its UNC path (lost_names.h).
  void connecting(MessageNumber number, std::u16string share) {
    if (connecting_.size() < kMostConnecting) connecting_[number] = std::move(share);
  }
  // It succeeded. SMB1: `session` is zero, trees are the connection's.
  void connected(MessageNumber number, std::uint64_t session, std::uint32_t tree) {
    auto share = connecting_.extract(number);
    if (!share.empty() && shares_.size() < kMostShares) shares_[{session, tree}] = std::move(share.mapped());
  }
  void refused(MessageNumber number) { connecting_.erase(number); }

  // Empty: not known.
  std::u16string of(std::uint64_t session, std::uint32_t tree) const {
    const auto share = shares_.find({session, tree});
    return share == shares_.end() ? std::u16string{} : share->second;
  }

 private:
  static constexpr std::size_t kMostShares = 4096, kMostConnecting = 64;

  KeyedMap<MessageNumber, std::u16string> connecting_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::u16string> shares_;
};

}  // namespace longhaul::smb
