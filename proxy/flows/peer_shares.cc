// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/peer_shares.h"

#include <algorithm>

namespace longhaul::flows {

void PeerShares::remove(const std::string& sharer) {
  const auto found = flows_.find(sharer);
  if (--found->second == 0) flows_.erase(found);
}

bool PeerShares::has_room(const std::string& sharer, std::uint32_t most, std::size_t sharers) const {
  const std::uint64_t part = most / 2 / std::max<std::size_t>(sharers, 1);
  std::uint64_t live = 0, own = 0, reserved = 0;
  std::size_t others = 0;  // other sharers that have flows
  for (const auto& [name, flows] : flows_) {
    live += flows;
    if (name == sharer) {
      own = flows;
    } else {
      ++others;
      reserved += part - std::min<std::uint64_t>(part, flows);
    }
  }
  if (live >= most) return false;
  if (own < part) return true;
  if (sharers > others + 1) reserved += part * (sharers - others - 1);
  return live + reserved < most;
}

}  // namespace longhaul::flows
