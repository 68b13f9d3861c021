// SPDX-License-Identifier: Apache-2.0
// See far_times.h.
#include "proxy/modules/smb/smb2/far_times.h"

#include <algorithm>

#include "proxy/modules/smb/smb2/build.h"

namespace longhaul::smb::smb2 {

void FarTimes::add(TimePoint now, const Open& open) {
  if (!(open.on_behalf || open.directory) || !open.name.exact || files_.contains(open.key)) return;
  File& file = files_[open.key];
  file = {.session = open.session, .tree = open.tree, .name = open.name, .directory = open.directory};
  file.shown = {open.times.last_write, open.times.change, open.directory ? 0 : open.end_of_file};
  look_later(now, open.key, file);
}

void FarTimes::look_later(TimePoint now, const OpenKey& open, File& file) {
  file.due = now + kPeriod;
  due_.emplace_back(file.due, open);
}

void FarTimes::on_ids_freed(TimePoint now) {
  send_closes(now);
  if (std::exchange(wants_ids_, false)) on_timeout(now);
}

void FarTimes::on_timeout(TimePoint now) {
  while (!wants_ids_ && !due_.empty() && due_.front().first <= now && next_look_ <= now) {
    const OpenKey key = due_.front().second;
    const auto found = files_.find(key);
    if (found == files_.end() || found->second.due != due_.front().first) {
      due_.pop_front();
      continue;
    }
    if (!look(now, key, found->second)) {
      wants_ids_ = true;
      if (!std::exchange(starved_, true)) drops_at_ = now + kPeriod;
      break;
    }
    starved_ = false;
    drops_at_.reset();
    due_.pop_front();
    next_look_ = now + apart();
  }
  if (drops_at_ && *drops_at_ <= now) drop_all(now);
}

// Once: without ids nothing is fetched anew either.
void FarTimes::drop_all(TimePoint now) {
  drops_at_.reset();
  std::vector<OpenKey> all;
  for (const auto& [open, file] : files_) all.push_back(open);
  for (const OpenKey& open : all) changed_(now, open);
}

std::optional<TimePoint> FarTimes::next_timeout() const {
  if (due_.empty() || wants_ids_) return drops_at_;
  const TimePoint look = std::max(due_.front().first, next_look_);
  return drops_at_ ? std::min(*drops_at_, look) : look;
}

// ---- a look

// The client must not find its file open after it has deleted it: what it says of the file waits meanwhile.
bool FarTimes::look(TimePoint now, const OpenKey& open, const File& file) {
  const Slice name = utf16_of(file.name.path);
  const Closing closing{
      .session = file.session, .tree = file.tree, .file = {}, .open = open, .number = ++last_};
  const bool sent = side_.inject(
      now, file.session, file.tree, 1,
      [&](const RequestHead& head) {
        CreateRequest request;
        request.desired_access = access::read_attributes;
        request.share_access = 7;
        request.disposition = Disposition::open;
        request.options =
            file.directory ? create_options::directory_file : create_options::non_directory_file;
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
  // Where not even the first look finds it, the server tells letter case apart: there is nothing to compare.
  const bool was_there = found->second.looked_at;
  files_.erase(found);
  if (was_there) gone_(now, closing.open);
}

void FarTimes::send_closes(TimePoint now) {
  while (!closes_.empty()) {
    const Closing closing = closes_.front();
    const CloseRequest request{.flags = kClosePostQueryAttributes, .file = closing.file};
    const auto build = [request](const RequestHead& head) { return build_close_request(head, request); };
    const bool sent =
        side_.inject_awaited(now, closing.session, closing.tree, build,
                             [this, closing](TimePoint then, const Frame&, const Element& answer) {
                               if (const auto closed = parse_close_response(answer.bytes);
                                   answer.header.status == Status::success && closed)
                                 compare(then, closing.open, *closed);
                               side_.let_go(then, closing.number);
                             });
    if (!sent && !side_.connection().any_untouchable()) return;
    closes_.pop_front();
    if (sent) continue;
    (void)side_.inject_owed(now, closing.session, closing.tree, build);
    side_.let_go(now, closing.number);
  }
}

void FarTimes::compare(TimePoint now, const OpenKey& open, const CloseResponse& response) {
  const auto found = files_.find(open);
  if (found == files_.end()) return;
  File& file = found->second;
  look_later(now, open, file);
  file.looked_at = true;
  const Shown shown{response.times.last_write, response.times.change,
                    file.directory ? 0 : response.end_of_file};
  if (!(response.flags & kClosePostQueryAttributes) || std::exchange(file.shown, shown) == shown) return;
  changed_(now, open);
}

}  // namespace longhaul::smb::smb2
