// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/oplock_returns.h"

namespace longhaul::smb::smb1 {

void OplockReturns::broken(TimePoint now, const Open& open, Oplock left) {
  breaks_[open.key] = {.near_done = near_over_ || given_up_.contains(open.key),
                       .left = left,
                       .fence = open.may_write ? std::optional(now + kOplockFence) : std::nullopt};
}

void OplockReturns::near_gives_back(const OpenKey& key) {
  if (const auto found = breaks_.find(key); found != breaks_.end()) {
    found->second.near_done = true;
  } else if (Open* open = connection_.open(key)) {
    open->locked = true;
    given_up_.insert(key);
  }
}

void OplockReturns::near_is_over() {
  near_over_ = true;
  for (auto& [key, waits] : breaks_) waits.near_done = true;
}

void OplockReturns::closed(const OpenKey& key) {
  breaks_.erase(key);
  given_up_.erase(key);
}

void OplockReturns::give_back() {
  for (auto at = breaks_.begin(); at != breaks_.end();) {
    const auto& [key, waits] = *at;
    Open* open = connection_.open(key);
    if (open && (!waits.near_done || leg_.is_busy(key))) {
      ++at;
      continue;
    }
    if (open) {
      const bool keeps_reads = waits.left == Oplock::level2 && !given_up_.contains(key);
      leg_.inject_unanswered(open->uid, open->tid, open->flags2, [&](const Ids& ids) {
        return oplock_release(ids, open->fid, keeps_reads ? 1 : 0);
      });
      open->oplock = keeps_reads ? Oplock::level2 : Oplock::none;
      open->break_pending = false;
    }
    at = breaks_.erase(at);
  }
}

std::optional<TimePoint> OplockReturns::next_timeout() const {
  std::optional<TimePoint> first;
  for (const auto& [key, waits] : breaks_)
    if (!waits.near_done && waits.fence && (!first || *waits.fence < *first)) first = waits.fence;
  return first;
}

bool OplockReturns::is_late(TimePoint now) {
  bool is_late = false;
  for (auto& [key, waits] : breaks_) {
    if (waits.near_done || !waits.fence || *waits.fence > now) continue;
    waits.fence.reset();
    is_late = true;
  }
  return is_late;
}

}  // namespace longhaul::smb::smb1
