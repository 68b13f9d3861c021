// SPDX-License-Identifier: Apache-2.0
// See far_times.h.
#include "proxy/modules/smb/smb2/far_times.h"

#include <algorithm>

#include "proxy/modules/smb/smb2/build.h"

namespace longhaul::smb::smb2 {

void FarTimes::add(TimePoint now, const Open& open) {
  if (open.spelled.empty() || open.directory || open.moved) return;
  const auto [found, is_new] = files_.try_emplace(open.key);
  File& file = found->second;
  file.used = now;
  if (!is_new) return used_.splice(used_.begin(), used_, file.place);
  used_.push_front(open.key);
  file.session = open.session;
  file.tree = open.tree;
  file.name = open.name;
  file.spelled = open.spelled;
  file.own = !open.on_behalf;
  file.shown = {open.times.last_write, open.times.change, open.end_of_file};
  file.place = used_.begin();
  look_later(now, open.key, file);
  if (used_.size() > kMostFiles) rest(now, used_.back());
}

void FarTimes::remove(const OpenKey& open) {
  const auto found = files_.find(open);
  if (found == files_.end()) return;
  used_.erase(found->second.place);
  files_.erase(found);
}

void FarTimes::rest(TimePoint now, OpenKey open) {
  remove(open);
  if (resting_.empty()) resting_since_ = now;
  resting_.push_back(open);
}

void FarTimes::look_later(TimePoint now, const OpenKey& open, File& file) {
  if (due_.size() >= 4 * kMostFiles) std::erase_if(due_, [this](const auto& due) { return !is_due(due); });
  file.due = now + kPeriod;
  due_.emplace_back(file.due, open);
}

bool FarTimes::is_due(const std::pair<TimePoint, OpenKey>& due) const {
  const auto found = files_.find(due.second);
  return found != files_.end() && found->second.due == due.first;
}

void FarTimes::on_ids_freed(TimePoint now) {
  send_closes(now);
  if (std::exchange(wants_ids_, false)) on_timeout(now);
}

void FarTimes::on_timeout(TimePoint now) {
  while (!used_.empty() && files_.at(used_.back()).used + kUnused <= now) rest(now, used_.back());
  for (const OpenKey& open : std::exchange(resting_, {})) rests_(now, open);
  while (!wants_ids_ && !due_.empty() && due_.front().first <= now) {
    const OpenKey key = due_.front().second;
    if (!is_due(due_.front())) {
      due_.pop_front();
      continue;
    }
    if (const Open* open = side_.connection().open(key); open && open->break_pending) {
      due_.pop_front();
      rest(now, key);
      continue;
    }
    if (next_look_ > now) break;
    if (!look(key, files_.at(key))) {
      wants_ids_ = true;
      if (!std::exchange(starved_, true)) drops_at_ = now + kPeriod;
      break;
    }
    starved_ = false;
    drops_at_.reset();
    due_.pop_front();
    next_look_ = now + kApart;
  }
  if (drops_at_ && *drops_at_ <= now) drop_all(now);
}

// To be called once: without ids nothing is fetched again either.
void FarTimes::drop_all(TimePoint now) {
  drops_at_.reset();
  const std::vector<OpenKey> all(used_.begin(), used_.end());
  for (const OpenKey& open : all) changed_(now, open);
}

std::optional<TimePoint> FarTimes::next_timeout() const {
  if (!resting_.empty()) return resting_since_;
  if (due_.empty() || wants_ids_) return drops_at_;
  const TimePoint look = std::max(due_.front().first, next_look_);
  return drops_at_ ? std::min(*drops_at_, look) : look;
}

// ---- a look

// The client must not find its file open after it has deleted it: its requests for the file wait meanwhile.
bool FarTimes::look(const OpenKey& open, const File& file) {
  const Slice name = utf16_of(file.spelled);
  const Closing closing{
      .session = file.session, .tree = file.tree, .file = {}, .open = open, .number = ++last_};
  const bool sent = side_.server().inject(
      file.session, file.tree, 1,
      [&](const RequestHead& head) {
        CreateRequest request;
        request.desired_access = access::read_attributes;
        request.share_access = 7;
        request.disposition = Disposition::open;
        request.options = create_options::non_directory_file;
        request.name = name.bytes();
        return build_create_request(head, request);
      },
      [this, closing](TimePoint then, const Frame&, const Element& answer) {
        opened(then, closing, answer);
      });
  if (sent) side_.hold_behind(closing.number, file.name);
  return sent;
}

void FarTimes::opened(TimePoint now, const Closing& closing, const Element& answer) {
  const auto created = parse_create_response(answer.bytes);
  if (answer.header.status == Status::success && created) {
    closes_.push_back(closing);
    closes_.back().file = created->file;
    return send_closes(now);
  }
  side_.let_go(now, closing.number);
  const auto found = files_.find(closing.open);
  if (found == files_.end()) return;
  // Under our own oplock a file that cannot be queried is still watched.
  const bool is_gone = found->second.looked_at || found->second.own;
  remove(closing.open);
  if (is_gone) gone_(now, closing.open);
}

void FarTimes::send_closes(TimePoint now) {
  while (!closes_.empty()) {
    const Closing closing = closes_.front();
    const CloseRequest request{.flags = kClosePostQueryAttributes, .file = closing.file};
    const auto build = [request](const RequestHead& head) { return build_close_request(head, request); };
    const bool sent =
        side_.server().inject_awaited(closing.session, closing.tree, build,
                                      [this, closing](TimePoint then, const Frame&, const Element& answer) {
                                        if (const auto closed = parse_close_response(answer.bytes);
                                            answer.header.status == Status::success && closed)
                                          compare(then, closing.open, *closed);
                                        side_.let_go(then, closing.number);
                                      });
    if (!sent && !side_.connection().sessions().any_untouchable()) return;
    closes_.pop_front();
    if (sent) continue;
    (void)side_.server().inject_owed(closing.session, closing.tree, build);
    side_.let_go(now, closing.number);
  }
}

void FarTimes::compare(TimePoint now, const OpenKey& open, const CloseResponse& response) {
  const auto found = files_.find(open);
  if (found == files_.end()) return;
  File& file = found->second;
  look_later(now, open, file);
  file.looked_at = true;
  const Shown shown{response.times.last_write, response.times.change, response.end_of_file};
  if (!(response.flags & kClosePostQueryAttributes) || std::exchange(file.shown, shown) == shown) return;
  changed_(now, open);
}

}  // namespace longhaul::smb::smb2
