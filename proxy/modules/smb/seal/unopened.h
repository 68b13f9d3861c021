// SPDX-License-Identifier: Apache-2.0
// Clients of which a login at a server could not be opened after NEGOTIATE had been changed for it (negotiation.h):
// that connection had to be reset, and their next ones are left as they are, so that nobody is reset twice.
#pragma once
#include <deque>
#include <map>
#include <optional>

#include "proxy/modules/module.h"

namespace longhaul::smb::seal {

class Unopened {
 public:
  // For so long; then the keys may have been supplied. A reload of the keys forgets all.
  static constexpr modules::Duration kTime = std::chrono::hours(1);
  // The oldest is forgotten beyond.
  static constexpr std::size_t kMost = 4096;

  void note(modules::TimePoint now, const modules::Ends& ends, modules::Reason reason) {
    const Pair pair{ends.client, ends.server};
    if (!pairs_.contains(pair)) {
      if (order_.size() >= kMost) {
        pairs_.erase(order_.front());
        order_.pop_front();
      }
      order_.push_back(pair);
    }
    pairs_[pair] = {now, reason};
  }
  std::optional<modules::Reason> why(modules::TimePoint now, const modules::Ends& ends) const {
    const auto found = pairs_.find({ends.client, ends.server});
    if (found == pairs_.end() || now - found->second.since > kTime) return std::nullopt;
    return found->second.reason;
  }
  void clear() {
    pairs_.clear();
    order_.clear();
  }

 private:
  using Pair = std::pair<modules::Address, modules::Address>;
  struct Noted {
    modules::TimePoint since;
    modules::Reason reason;
  };
  std::map<Pair, Noted> pairs_;
  std::deque<Pair> order_;
};

}  // namespace longhaul::smb::seal
