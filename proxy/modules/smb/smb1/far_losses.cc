// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/far_losses.h"

#include "proxy/modules/smb/smb1/near_settled.h"

namespace longhaul::smb::smb1 {

void FarLosses::request(const Message& message) {
  files_.on_request(message);
  learn_client(message, policy_);
  if (message.header.command != Command::write_andx) return;
  Open* open = connection_.open_of(message);
  if (!open) return;
  open->settled = false;
  mark(*open);
}

bool FarLosses::may_promise(const Open& open) const {
  return may_have_promised(open) && doubts_.may_promise(open.on_behalf);
}

bool FarLosses::may_have_promised(const Open& open) const {
  return policy_.may_allow(features_) && may_be_written_behind(open) &&
         doubts_.may_have_promised(open.on_behalf);
}

void FarLosses::mark(const Open& open) {
  if (may_promise(open)) doubts_.mark(open.key, file_of(open));
}

std::vector<Marked> FarLosses::poll_marks() {
  std::vector<Marked> told;
  for (const auto& [key, is_marked] : doubts_.poll_marks())
    if (const Open* open = connection_.open(key))
      told.push_back({.open = key, .settled = open->times_settled, .refused = !is_marked});
  return told;
}

void FarLosses::settled(const Settled& told) {
  if (Open* open = connection_.open(told.open)) {
    open->settled = true;
    ++open->times_settled;
    open->failed_promise = false;
  }
  doubts_.settled(told.open);
}

void FarLosses::refused(const OpenKey& key) {
  if (Open* open = connection_.open(key)) open->failed_promise = true;
}

void FarLosses::closed(const Open& open) {
  files_.closed(open);
  if (!open.failed_promise || open.delete_on_close) return doubts_.unmark(open.key);
  doubts_.closed_failed(open.key, file_of(open));
}

bool FarLosses::goes_on_with_lost(const Message& message) {
  if (!doubts_.any()) return false;
  const auto wanted = wanted_by(message);
  return wanted && doubts_.tells(files_.of(wanted->name), wanted->use, number_of(message.header));
}

bool FarLosses::is_told_by_reset(const Message& message, bool is_mute) {
  if (!is_mute && connection_.negotiated().why_untouchable() == reasons::optimised) return false;
  if (!doubts_.any()) return false;
  const auto wanted = wanted_by(message);
  return wanted && doubts_.tells_by_reset(files_.of(wanted->name), wanted->use);
}

void FarLosses::lose_doubtful(Cause cause, Stream stream, const std::vector<OpenKey>& owed) {
  std::vector<LostWrites::File> files;
  for (const OpenKey& key : owed)
    if (const Open* open = connection_.open(key)) files.push_back(file_of(*open));
  if (stream == Stream::open)
    for (const auto& [fid, open] : connection_.opens().all())
      if (may_have_promised(open) && (!open.settled || open.failed_promise)) files.push_back(file_of(open));
  doubts_.lose(cause, files);
}

}  // namespace longhaul::smb::smb1
