// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/unreachable_servers.h"

namespace longhaul::flows {

void UnreachableServers::remember(const link::Destination& destination, Reason reason,
                                  Clock::time_point now) {
  if (servers_.size() >= kMost)
    std::erase_if(servers_, [&](const auto& entry) { return entry.second.until <= now; });
  if (servers_.size() < kMost) servers_[destination.to_text()] = {reason, now + kRemembered};
}

std::optional<Reason> UnreachableServers::reason_for(const link::Destination& destination,
                                                     Clock::time_point now) const {
  const auto known = servers_.find(destination.to_text());
  if (known == servers_.end() || now >= known->second.until) return std::nullopt;
  return known->second.reason;
}

}  // namespace longhaul::flows
