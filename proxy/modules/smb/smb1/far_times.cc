// SPDX-License-Identifier: Apache-2.0
// See far_times.h.
#include "proxy/modules/smb/smb1/far_times.h"

#include <vector>

#include "proxy/modules/smb/smb1/builders.h"
#include "proxy/modules/smb/smb1/records.h"

namespace longhaul::smb::smb1 {

void FarTimes::add(TimePoint now, const Open& open) {
  now_ = now;
  const auto [added, is_new] = files_.try_emplace(open.key);
  if (is_new) (void)look(now, added);
}

// Returns false if the server could not be queried for so long that the file may have been changed meanwhile.
bool FarTimes::look(TimePoint now, Files::iterator found) {
  const OpenKey key = found->first;
  File& file = found->second;
  const Open* open = connection_.open(key);
  if (open && open->closing) open = nullptr;
  if (!open || leg_.raw().under_way() || !leg_.has_room()) {
    // Responses requested from the server since then may be older than the first look.
    file.is_unsure = file.is_unsure || !file.shown;
    file.due = now + (open ? std::chrono::nanoseconds(kAgain) : std::chrono::nanoseconds(kPeriod));
    const bool is_late = open && file.shown && now - file.looked > kPeriod + kLate;
    return !is_late || std::exchange(file.is_late, true);
  }
  file.due = now + kPeriod;
  file.is_asked = true;
  file.is_late = false;
  file.looked = now;
  ++counters_.injected;
  leg_.inject(
      open->uid, open->tid, open->flags2, key,
      [fid = open->fid](const Ids& ids) { return query_information2_request(ids, fid); },
      [this, key](const Message& answer) {
        answered(key, answer);
        return ServerLeg::Parts::last;
      });
  return true;
}

void FarTimes::answered(const OpenKey& open, const Message& answer) {
  const auto found = files_.find(open);
  if (found == files_.end()) return;
  File& file = found->second;
  const auto info = parse_query_information2_reply(answer.first());
  if (answer.header.status != 0 || !info) {
    files_.erase(found);  // a server that does not support it
    return;
  }
  file.is_asked = false;
  const Shown shown{info->written, info->bytes};
  const bool differs = file.shown && *file.shown != shown;
  if (differs || (!file.shown && is_recent(shown))) file.settled = now_ + kSettles;
  file.shown = shown;
  if (std::exchange(file.is_unsure, file.looked < file.settled) || differs) changed_(open);
}

// The unit of its time has not ended, or the previous one: clocks count whole seconds, and responses take
// time.
bool FarTimes::is_recent(const Shown& shown) const {
  const auto written = moment_of(shown.written);
  if (!written) return false;
  const auto since = std::chrono::floor<std::chrono::seconds>(now_ - negotiated_);
  return connection_.negotiated().server_time() + since < *written + kUnit + std::chrono::seconds(1);
}

void FarTimes::on_timeout(TimePoint now) {
  now_ = now;
  std::vector<OpenKey> late;
  for (auto each = files_.begin(); each != files_.end(); ++each)
    if (!each->second.is_asked && each->second.due <= now && !look(now, each)) late.push_back(each->first);
  for (const OpenKey& open : late) changed_(open);
}

std::optional<TimePoint> FarTimes::next_timeout() const {
  std::optional<TimePoint> first;
  for (const auto& [open, file] : files_)
    if (!file.is_asked && (!first || file.due < *first)) first = file.due;
  return first;
}

}  // namespace longhaul::smb::smb1
