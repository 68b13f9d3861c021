// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/source_memory.h"

#include <algorithm>

namespace longhaul::flows {

SourceMemory::Known SourceMemory::about(const boost::asio::ip::address& server, TimePoint now) const {
  const auto found = entries_.find(server);
  return found == entries_.end() || found->second.until <= now ? Known::nothing : found->second.what;
}

void SourceMemory::learn(const boost::asio::ip::address& server, Known what, TimePoint now) {
  const Entry entry{what, now + kRemembered};
  if (const auto found = entries_.find(server); found != entries_.end()) {
    found->second = entry;
    return;
  }
  if (entries_.size() >= kDestinations) {
    std::erase_if(entries_, [&](const auto& item) { return item.second.until <= now; });
    if (entries_.size() >= kDestinations) {
      entries_.erase(std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
        return a.second.until < b.second.until;
      }));
    }
  }
  entries_.emplace(server, entry);
}

}  // namespace longhaul::flows
