// SPDX-License-Identifier: Apache-2.0
// See notify_handles.h.
#include "proxy/modules/smb/smb2/notify_handles.h"

#include <utility>

#include "proxy/modules/smb/notify_information.h"

namespace longhaul::smb::smb2 {

bool NotifyHandles::watches(Number number) const {
  const auto found = handles_.find(number);
  return found != handles_.end() && found->second.watches;
}

bool NotifyHandles::has_failed(Number number) const {
  const auto found = handles_.find(number);
  return found == handles_.end() || found->second.state == Handle::State::failed;
}

void NotifyHandles::open(TimePoint now, Number number, const FolderPath& path) {
  handles_.emplace(number, Handle{.path = path});
  go_on(now, number);
}

void NotifyHandles::go_on(TimePoint now, Number number) {
  const auto found = handles_.find(number);
  if (found == handles_.end() || ended_) return;
  Handle& handle = found->second;
  wanting_ids_.erase(number);
  if (handle.state == Handle::State::to_open) send_create(now, number, handle);
  if (handle.state == Handle::State::to_listen && now >= handle.due) listen(now, number, handle);
}

void NotifyHandles::send_create(TimePoint now, Number number, Handle& handle) {
  const Slice name = utf16_of(handle.path.path);
  const bool sent = side_.server().inject_awaited(
      handle.path.session, handle.path.tree,
      [&name](const RequestHead& head) {
        CreateRequest request;
        request.desired_access = access::read_data | access::read_attributes;
        request.share_access = 7;
        request.disposition = Disposition::open;
        request.options = create_options::directory_file;
        request.name = name.bytes();
        return build_create_request(head, request);
      },
      [this, number, of = handle.path](TimePoint then, const Frame&, const Element& answer) {
        const auto created = parse_create_response(answer.bytes);
        const bool good = answer.header.status == Status::success && created;
        const auto found = handles_.find(number);
        if (found == handles_.end()) {
          if (good) close_file(then, of, created->file);
          return;
        }
        if (!good) return fail(then, number);
        found->second.file = created->file;
        found->second.state = Handle::State::to_listen;
        go_on(then, number);
      });
  if (sent) {
    handle.state = Handle::State::opening;
  } else {
    wait_for_id(now, number);
  }
}

void NotifyHandles::listen(TimePoint now, Number number, Handle& handle) {
  const ChangeNotifyRequest request{
      .output_bytes = kNotifyBytes, .file = handle.file, .filter = kNotifyFilter};
  const bool sent = side_.server().listen(
      handle.path.session, handle.path.tree,
      [request](const RequestHead& head) { return build_change_notify_request(head, request); },
      [this, number](TimePoint then) {
        const auto found = handles_.find(number);
        if (found == handles_.end() || !is_unconfirmed(found->second)) return;
        found->second.watches = true;
        begun_(then, number);
      },
      [this, number](TimePoint then, const Frame&, const Element& answer) {
        answered(then, number, answer);
      });
  if (sent) {
    handle.state = Handle::State::listening;
    handle.due = now + kPatience;
  } else {
    wait_for_id(now, number);
  }
}

// Queries wait for the outcome, so it must be reported even if no request of ours is sent any more.
void NotifyHandles::wait_for_id(TimePoint now, Number number) {
  if (side_.connection().sessions().any_untouchable()) return fail(now, number);
  wanting_ids_.insert(number);
}

void NotifyHandles::answered(TimePoint now, Number number, const Element& answer) {
  const auto found = handles_.find(number);
  if (found == handles_.end() || found->second.state != Handle::State::listening) return;
  const auto response = parse_buffer_response(answer.bytes);
  if (answer.header.status == Status::success && response && !response->buffer.empty()) {
    changed_(now, number, response->buffer);
  } else if (answer.header.status == Status::notify_enum_dir || answer.header.status == Status::success) {
    // More than the server remembers: it may be any file.
    changed_(now, number, std::nullopt);
  } else {
    return fail(now, number);
  }
  const auto still = handles_.find(number);
  if (still == handles_.end()) return;
  still->second.state = Handle::State::to_listen;
  still->second.due = now + kRest;
  // Changes may have been reported without an interim response: this shows that the server watches.
  if (!std::exchange(still->second.watches, true)) begun_(now, number);
}

// The folder cannot be watched, or no longer.
void NotifyHandles::fail(TimePoint now, Number number) {
  Handle& handle = handles_.at(number);
  const FileId file = std::exchange(handle.file, {});
  if (file != FileId{}) close_file(now, handle.path, file);
  stop(number);
  failed_(now, number);
}

// ---- ends

void NotifyHandles::stop(Number number) {
  const auto found = handles_.find(number);
  if (found == handles_.end()) return;
  found->second.watches = false;
  found->second.state = Handle::State::failed;
}

void NotifyHandles::close(TimePoint now, Number number) {
  const auto handle = handles_.extract(number);
  if (handle.empty()) return;
  wanting_ids_.erase(number);
  if (handle.mapped().file != FileId{}) close_file(now, handle.mapped().path, handle.mapped().file);
}

void NotifyHandles::close_file(TimePoint now, const FolderPath& path, const FileId& file) {
  closes_.push_back({.path = path, .file = file, .number = ++last_close_});
  side_.hold_behind(last_close_, FileName{.tree = path.tree, .path = path.path});
  send_closes(now);
}

// A request that can no longer be sent must not block others.
void NotifyHandles::send_closes(TimePoint now) {
  while (!closes_.empty()) {
    const Closing closing = closes_.back();
    const CloseRequest request{.file = closing.file};
    const auto build = [request](const RequestHead& head) { return build_close_request(head, request); };
    const bool sent = side_.server().inject_awaited(
        closing.path.session, closing.path.tree, build,
        [this, number = closing.number](TimePoint then, const Frame&, const Element&) {
          side_.let_go(then, number);
        });
    if (!sent && !side_.connection().sessions().any_untouchable() && !ended_) return;
    closes_.pop_back();
    if (sent) continue;
    (void)side_.server().inject_owed(closing.path.session, closing.path.tree, build);
    side_.let_go(now, closing.number);
  }
}

// ---- ids and time

void NotifyHandles::on_ids_freed(TimePoint now) {
  for (const Number number : std::exchange(wanting_ids_, {})) go_on(now, number);
}

void NotifyHandles::on_timeout(TimePoint now) {
  std::vector<Number> due;
  for (const auto& [number, handle] : handles_)
    if (handle.state == Handle::State::to_listen || is_unconfirmed(handle)) due.push_back(number);
  for (const Number number : due) {
    const auto found = handles_.find(number);
    if (found == handles_.end()) continue;
    if (found->second.state == Handle::State::to_listen && !wanting_ids_.contains(number)) {
      go_on(now, number);
    } else if (is_unconfirmed(found->second) && now >= found->second.due) {
      fail(now, number);
    }
  }
}

std::optional<TimePoint> NotifyHandles::next_timeout() const {
  std::optional<TimePoint> first;
  for (const auto& [number, handle] : handles_) {
    const bool listens_later = handle.state == Handle::State::to_listen && !wanting_ids_.contains(number);
    if ((is_unconfirmed(handle) || listens_later) && (!first || handle.due < *first)) first = handle.due;
  }
  return first;
}

}  // namespace longhaul::smb::smb2
