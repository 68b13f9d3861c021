// SPDX-License-Identifier: Apache-2.0
// Requests that are held until it is known whether they may be promised: until the file is marked on both
// sides' disks, or the server's free space is known. The half that holds them calls review() again.
#pragma once
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "proxy/modules/promises/ledger.h"

namespace longhaul::promises {

class Undecided {
 public:
  // Limit for one flow. Beyond it, requests wait for the server.
  static constexpr std::size_t kMost = 64;
  bool is_full() const { return held_.size() >= kMost; }

  // The ledger took the request as an open question.
  void hold(MessageNumber message, const OpenKey& open) { held_.emplace_back(message, open); }

  // `may_be_promised(open)`: std::optional<bool>; nullopt: not known yet. Returns whether some were decided,
  // or answered.
  template <class MayBePromised>
  bool review(Ledger& ledger, const MayBePromised& may_be_promised) {
    return std::erase_if(held_, [&](const auto& each) {
             const auto& [message, open] = each;
             if (!ledger.waits_for(message)) return true;
             const std::optional<bool> may_be = may_be_promised(open);
             if (!may_be) return false;
             ledger.decide(message, *may_be ? Ledger::Answer::yes : Ledger::Answer::no);
             return true;
           }) != 0;
  }

 private:
  std::vector<std::pair<MessageNumber, OpenKey>> held_;
};

}  // namespace longhaul::promises
