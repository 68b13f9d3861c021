// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/oplock_returns.h"

#include <utility>
#include <vector>

namespace longhaul::smb::smb2 {

bool OplockReturns::takes_break(TimePoint now, const Message& message) {
  if (!message.single() || !message.header().is_unsolicited()) return false;
  const auto notification = parse_break(message.first().bytes);
  const auto* oplock = notification ? std::get_if<OplockBreak>(&*notification) : nullptr;
  const Open* open = oplock ? side_.connection().open(oplock->file) : nullptr;
  if (!open || !open->on_behalf) return false;
  if (open->closing && has_promises_(open->key)) return true;  // its CLOSE is the acknowledgement
  ++side_.counters().breaks;
  side_.out().tell(smb::Break{.open = open->key, .level = static_cast<std::uint8_t>(oplock->level)});
  if (!open->break_pending) return true;
  GivingBack& giving = giving_back_[open->key];
  near_is_done(open->key, giving);
  // Nothing can have been promised under a reader's. A client that may write may have been promised
  // something that is on its way.
  giving = {.level = oplock->level, .near_done = ended_, .alone = !ended_ && !open->may_write()};
  alone_ += giving.alone ? 1 : 0;
  if (!ended_ && !giving.alone) fences_.begin(now, open->key);
  return true;
}

void OplockReturns::near_is_done(const OpenKey& open, GivingBack& giving) {
  giving.near_done = true;
  fences_.done(open);
  alone_ -= std::exchange(giving.alone, false) ? 1 : 0;
}

// All that was promised lies before the end.
void OplockReturns::stream_ended() {
  ended_ = true;
  for (auto& [open, giving] : giving_back_) near_is_done(open, giving);
  give_back_all();
}

std::optional<TimePoint> OplockReturns::next_timeout() const {
  auto at = alone_ == 0 ? std::nullopt : out_of_contact(side_.surroundings());
  if (const auto fence = fences_.next_timeout(); fence && (!at || *fence < *at)) at = fence;
  return at;
}

void OplockReturns::on_timeout(TimePoint now) {
  if (fences_.is_late(now)) {
    fences_ = {};
    return side_.fence();
  }
  const auto alone_at = alone_ == 0 ? std::nullopt : out_of_contact(side_.surroundings());
  if (!alone_at || now < *alone_at) return;
  for (auto& [open, giving] : giving_back_)
    if (giving.alone) near_is_done(open, giving);
  give_back_all();
}

void OplockReturns::on_ids_freed() {
  for (const OpenKey& open : std::exchange(back_unsent_, {})) give_back(open);
}

void OplockReturns::give_back_all() {
  std::vector<OpenKey> opens;
  for (const auto& [open, giving] : giving_back_) opens.push_back(open);
  for (const OpenKey& open : opens) give_back(open);
}

void OplockReturns::give_back(const OpenKey& key) {
  const auto found = giving_back_.find(key);
  if (found == giving_back_.end()) return;
  GivingBack& giving = found->second;
  Open* open = side_.connection().open(key);
  if (open && !open->closing) {  // its CLOSE gives back everything
    if (!giving.near_done || has_promises_(key)) return;
    const OplockBreak acknowledgement{.level = giving.level, .file = open->file};
    const bool sent =
        side_.server().acknowledge(open->session, open->tree, [acknowledgement](const RequestHead& head) {
          return build_oplock_acknowledgement(head, acknowledgement);
        });
    if (!sent) {
      back_unsent_.insert(key);
      return;
    }
    open->break_pending = false;
  }
  near_is_done(key, giving);
  giving_back_.erase(found);
}

void OplockReturns::near_gives_back(const OpenKey& open) {
  const auto giving = giving_back_.find(open);
  if (giving == giving_back_.end()) return;
  near_is_done(open, giving->second);
  give_back(open);
}

}  // namespace longhaul::smb::smb2
