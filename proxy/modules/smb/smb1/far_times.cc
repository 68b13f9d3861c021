// SPDX-License-Identifier: Apache-2.0
// See far_times.h.
#include "proxy/modules/smb/smb1/far_times.h"

#include <algorithm>

#include "proxy/modules/smb/smb1/builders.h"
#include "proxy/modules/smb/smb1/records.h"

namespace longhaul::smb::smb1 {

void FarTimes::add(TimePoint now, const Open& open) {
  const auto files =
      std::count_if(files_.begin(), files_.end(), [](const auto& each) { return !each.second.is_folder; });
  if (static_cast<std::size_t>(files) < kMostFiles)
    add(now, open.key, {.handle = {open.uid, open.tid, open.fid, open.flags2}});
}

void FarTimes::add_folder(TimePoint now, const Handle& handle) {
  add(now, handle.key(), {.handle = handle, .is_folder = true});
}

void FarTimes::add(TimePoint now, const OpenKey& key, const File& file) {
  now_ = now;
  const auto [added, is_new] = files_.try_emplace(key, file);
  if (is_new) look(now, added);
}

void FarTimes::look(TimePoint now, Files::iterator file) {
  const OpenKey key = file->first;
  const Open* open = connection_.open(key);
  const bool is_open = file->second.is_folder || (open && !open->closing);
  file->second.due = now + kPeriod;
  if (!is_open || leg_.raw().under_way() || !leg_.has_room()) {
    // What was asked of the server since then may be older than the first look.
    file->second.is_unsure = file->second.is_unsure || !file->second.shown;
    return;
  }
  file->second.is_asked = true;
  file->second.looked = now;
  ++counters_.injected;
  const Handle& handle = file->second.handle;
  leg_.inject(
      handle.uid, handle.tid, handle.flags2, file->second.is_folder ? std::nullopt : std::optional(key),
      [&handle](const Ids& ids) { return query_information2_request(ids, handle.fid); },
      [this, key](const Message& answer) {
        answered(key, answer);
        return ServerLeg::Parts::last;
      });
}

void FarTimes::answered(const OpenKey& open, const Message& answer) {
  const auto found = files_.find(open);
  if (found == files_.end()) return;
  File& file = found->second;
  const auto info = parse_query_information2_reply(answer.first());
  if (answer.header.status != 0 || !info) {
    files_.erase(found);  // a server that cannot say it
    return;
  }
  file.is_asked = false;
  const Shown shown{info->written, info->bytes};
  const bool differs = file.shown && *file.shown != shown;
  if (differs || (!file.shown && is_recent(shown))) file.settled = now_ + kSettles;
  file.shown = shown;
  if (std::exchange(file.is_unsure, file.looked < file.settled) || differs) changed_(open);
}

// The unit of its time is not over, or of the time before: clocks tell whole seconds, and their answers take
// time.
bool FarTimes::is_recent(const Shown& shown) const {
  const auto written = moment_of(shown.written);
  if (!written) return false;
  const auto since = std::chrono::floor<std::chrono::seconds>(now_ - negotiated_);
  return connection_.server_time() + since < *written + kUnit + std::chrono::seconds(1);
}

void FarTimes::on_timeout(TimePoint now) {
  now_ = now;
  for (auto each = files_.begin(); each != files_.end(); ++each)
    if (!each->second.is_asked && each->second.due <= now) look(now, each);
}

std::optional<TimePoint> FarTimes::next_timeout() const {
  std::optional<TimePoint> first;
  for (const auto& [open, file] : files_)
    if (!file.is_asked && (!first || file.due < *first)) first = file.due;
  return first;
}

}  // namespace longhaul::smb::smb1
