// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/far_losses.h"

#include <algorithm>

#include "proxy/modules/smb/smb1/near_settled.h"

namespace longhaul::smb::smb1 {

void FarLosses::request(const Message& message) {
  telling_.client_goes_on();
  files_.on_request(message);
  if (message.header.command != Command::write_andx) return;
  Open* open = connection_.open_of(message);
  if (!open) return;
  open->settled = false;
  mark(*open);
}

bool FarLosses::may_promise(const Open& open) const {
  return may_promise_ && may_be_written_behind(open) && (open.on_behalf || may_promise_cached_);
}

void FarLosses::mark(const Open& open) {
  if (may_promise(open)) marks_.mark(open.key, file_of(open), who_.near);
}

std::vector<Marked> FarLosses::poll_marked() {
  std::vector<Marked> told;
  for (const OpenKey& key : marks_.poll_durable())
    if (const Open* open = connection_.open(key)) told.push_back({key, open->times_settled});
  return told;
}

void FarLosses::settled(const Settled& told) {
  marks_.unmark(told.open);
  if (Open* open = connection_.open(told.open)) {
    open->settled = true;
    ++open->times_settled;
    open->failed_promise = false;
  }
  std::erase_if(failed_, [&](const Failed& each) { return each.open == told.open; });
}

void FarLosses::refused(const OpenKey& key) {
  if (Open* open = connection_.open(key)) open->failed_promise = true;
}

void FarLosses::closed(const Open& open) {
  files_.closed(open);
  if (!open.failed_promise || open.delete_on_close) return marks_.unmark(open.key);
  failed_.push_back({open.key, file_of(open)});
  if (failed_.size() <= kMostFailed) return;
  marks_.unmark(failed_.front().open);
  failed_.pop_front();
}

bool FarLosses::goes_on_with_lost(const Opening& opening) {
  if (!lost_->any(ends_)) return false;
  const LostWrites::File file = file_of(opening.open);
  lost_->known_to(who_.near, file);
  lost_->known_to(who_.before, file);
  if (opening.use == LostWrites::Use::replaces || !telling_.has(file, opening.use)) return false;
  telling_.told(file, opening.use);
  return true;
}

void FarLosses::lose_doubtful(Cause cause, Stream stream, const std::vector<OpenKey>& owed) {
  if (!may_promise_) return;
  // The client of one flow never gets more reports.
  std::size_t left = LostWrites::kMost;
  const auto lose = [&](const LostWrites::File& file) {
    if (left == 0) return;
    --left;
    lost_->add(file, {.cause = cause, .near = who_.near});
  };
  for (const Failed& each : failed_) lose(each.file);
  for (const OpenKey& key : owed)
    if (const Open* open = connection_.open(key)) lose(file_of(*open));
  if (stream == Stream::ended) return;
  for (const auto& [fid, open] : connection_.opens())
    if (may_promise(open) && (!open.settled || open.failed_promise)) lose(file_of(open));
}

}  // namespace longhaul::smb::smb1
