// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/oplock_returns.h"

namespace longhaul::smb::smb1 {

void OplockReturns::broken(TimePoint now, const Open& open, Oplock left) {
  const bool near_done = near_over_ || given_up_.contains(open.key);
  breaks_[open.key] = {.near_done = near_done, .left = left};
  fences_.done(open.key);
  if (open.may_write && !near_done) fences_.begin(now, open.key);
}

void OplockReturns::near_gives_back(const OpenKey& key) {
  if (const auto found = breaks_.find(key); found != breaks_.end()) {
    found->second.near_done = true;
    fences_.done(key);
  } else if (Open* open = connection_.open(key)) {
    open->locked = true;
    given_up_.insert(key);
  }
}

void OplockReturns::near_is_over() {
  near_over_ = true;
  for (auto& [key, waits] : breaks_) waits.near_done = true;
  fences_ = {};
}

void OplockReturns::closed(const OpenKey& key) {
  breaks_.erase(key);
  fences_.done(key);
  given_up_.erase(key);
}

// Not of a file whose CLOSE has been sent, which ends the break: the server may give the FID to another file
// next, and would apply a later release to that one.
void OplockReturns::give_back() {
  for (auto at = breaks_.begin(); at != breaks_.end();) {
    const auto& [key, waits] = *at;
    Open* open = connection_.open(key);
    if (open && (!waits.near_done || leg_.is_busy(key) || connection_.closes(open->fid))) {
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
    fences_.done(key);
    at = breaks_.erase(at);
  }
}

}  // namespace longhaul::smb::smb1
