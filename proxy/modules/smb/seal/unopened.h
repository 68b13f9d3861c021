// SPDX-License-Identifier: Apache-2.0
// Clients with a login that could not be opened after NEGOTIATE had been changed for it (negotiation.h): that
// connection had to be reset, and the next ones from this client to this server are left unchanged, so that
// no client is reset twice.
#pragma once
#include <deque>
#include <map>
#include <optional>

#include "proxy/modules/module.h"

namespace longhaul::smb::seal {

class Unopened {
 public:
  // Duration of an entry; afterwards the keys may have been supplied. A reload of the keys removes all
  // entries.
  static constexpr modules::Duration kTime = std::chrono::hours(1);
  // Beyond this, the oldest is forgotten.
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
