// SPDX-License-Identifier: Apache-2.0
// Destinations that were recently unreachable over the link, and why: new flows to them bypass it. Pure.
#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "proxy/flows/reason.h"
#include "proxy/link/destination.h"

namespace longhaul::flows {

class UnreachableServers {
 public:
  using Clock = std::chrono::steady_clock;
  // The same as the timeout in the packet rules, so that both modes behave alike.
  static constexpr std::chrono::seconds kRemembered{10};
  // At this number, none is added until others have expired.
  static constexpr std::size_t kMost = 4096;

  void remember(const link::Destination& destination, Reason reason, Clock::time_point now);
  std::optional<Reason> reason_for(const link::Destination& destination, Clock::time_point now) const;

 private:
  struct Remembered {
    Reason reason;
    Clock::time_point until;
  };
  std::map<std::string, Remembered> servers_;
};

}  // namespace longhaul::flows
