// SPDX-License-Identifier: Apache-2.0
// The open files of an SMB1 connection, found by FID, which belongs to the connection, and by what ends many
// of them at once: their tree, their session, their process. connection.h decides when that happens.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "codecs/keyed_hash.h"
#include "proxy/modules/smb/smb1/open.h"

namespace longhaul::smb::smb1 {

class OpenTable {
 public:
  using ByFid = KeyedMap<std::uint16_t, Open>;
  ByFid& all() { return opens_; }
  const ByFid& all() const { return opens_; }

  Open* find(std::uint16_t fid);
  Open* find(const OpenKey& key);
  Open* find_serial(std::uint64_t serial);

  // Replaces an open with the same FID; the new one gets its own serial. Returns null if there is no room, so
  // that it is not tracked.
  Open* add(Open open);
  std::optional<Open> remove(const OpenKey& key);
  template <class Which>
  void remove_where(Which&& which, std::vector<Open>& removed) {
    for (auto at = opens_.begin(); at != opens_.end();) {
      if (which(at->second)) {
        removed.push_back(std::move(at->second));
        at = opens_.erase(at);
      } else {
        ++at;
      }
    }
  }

  // Limit of tracked opens: the cost of a message grows with their number. Others pass unchanged, like pipes.
  static constexpr std::size_t kMostOpens = 256;
  bool has_room_for(std::size_t more) const { return opens_.size() + more <= kMostOpens; }

 private:
  ByFid opens_;
  std::uint64_t added_ = 0;
};

}  // namespace longhaul::smb::smb1
