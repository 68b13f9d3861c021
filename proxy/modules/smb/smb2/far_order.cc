// SPDX-License-Identifier: Apache-2.0
// See far_order.h. Waiting here costs at most a round trip on the server's LAN: promises made before a
// request have arrived, and were sent to the server, before it.
#include "proxy/modules/smb/smb2/far_order.h"

#include <algorithm>

namespace longhaul::smb::smb2 {
namespace {

constexpr std::size_t kMostOwn = 1024;

}  // namespace

FarOrder::Scope FarOrder::scope_of(const Message& message) const {
  using Kind = Scope::Kind;
  const Header& header = message.header();
  const Pending* request = side_.connection().pending(header.message_id);
  if (!message.single()) return {};
  if (header.command == Command::cancel || header.command == Command::oplock_break) request = nullptr;
  const auto of_file = [&](Kind kind) {
    const Open* open = request ? side_.connection().open(request->file) : nullptr;
    Scope scope{.kind = kind};
    if (open) scope.file = open->group;
    if (request) scope.offset = request->offset, scope.length = request->length;
    return scope;
  };
  switch (header.command) {
    case Command::negotiate:
    case Command::tree_connect:
    case Command::echo:
    case Command::cancel:
    case Command::change_notify:
      return {.kind = Kind::nothing};
    case Command::create: {
      Scope scope{.kind = Kind::file};
      if (request && request->opening) scope.file = request->opening->group;
      return scope;
    }
    case Command::read: {
      // Up to any end: a write behind the range may move the end of the file.
      Scope scope = of_file(Kind::range);
      scope.length = ~std::uint64_t{0} - scope.offset;
      return scope;
    }
    case Command::write:
      return of_file(Kind::range);
    case Command::close:
    case Command::flush:
    case Command::lock:
      return of_file(Kind::file);
    case Command::query_info:
      if (!request || request->info_type == InfoType::file_system || request->info_type == InfoType::quota)
        return {};
      return of_file(Kind::file);
    case Command::set_info: {
      if (!request || request->info_type == InfoType::file_system || request->info_type == InfoType::quota)
        return {};
      const bool names =
          request->info_type == InfoType::file &&
          (request->info_class == file_info::rename || request->info_class == file_info::rename_ex ||
           request->info_class == file_info::link);
      return names ? Scope{} : of_file(Kind::file);
    }
    default:
      return {};
  }
}

// ---- what waits for what

bool FarOrder::before(const std::set<Sequence>& promises, Sequence sequence) {
  return !promises.empty() && *promises.begin() < sequence;
}

bool FarOrder::is_barrier(const Scope& scope) {
  return scope.kind == Scope::Kind::everything || !scope.file || scope.file->is_any();
}

// Whether a WRITE before the sequence overlaps the range. Examines only a few of them, and returns true if
// there are more: all of them will soon be done.
bool FarOrder::overlaps(const Work& work, const Scope& scope, Sequence sequence) const {
  constexpr int kMostSteps = 64;
  int steps = 0;
  const std::uint64_t from = scope.offset - std::min(scope.offset, work.longest_write);
  for (auto each = work.writes.lower_bound(from); each != work.writes.end(); ++each) {
    if (each->first >= scope.offset && each->first - scope.offset >= scope.length) return false;
    const Promise& promise = each->second;
    if (promise.sequence < sequence &&
        (each->first >= scope.offset || scope.offset - each->first < promise.length)) {
      return true;
    }
    if (++steps == kMostSteps) return true;
  }
  return false;
}

// For promises that were made before it.
bool FarOrder::waits(const Scope& scope, Sequence sequence) const {
  if (scope.kind == Scope::Kind::nothing) return false;
  if (is_barrier(scope)) return before(all_promises_, sequence);
  const auto found = work_.find(scope.file.get());
  if (found == work_.end() || !before(found->second.promises, sequence)) return false;
  if (scope.kind == Scope::Kind::file) return true;
  // A CLOSE under way: no more requests come through this open, but for others the file is still open.
  return before(found->second.others, sequence) || overlaps(found->second, scope, sequence);
}

FarOrder::Work& FarOrder::work_of(const FileGroupRef& file) {
  Work& work = work_[file.get()];
  work.file = file;
  return work;
}

void FarOrder::add_promise(const FileGroupRef& file, Sequence sequence) {
  Work& work = work_of(file);
  work.promises.insert(sequence);
  work.others.insert(sequence);
  all_promises_.insert(sequence);
}

void FarOrder::remove_promise(const FileGroupRef& file, Sequence sequence) {
  Work& work = work_of(file);
  work.promises.erase(sequence);
  work.others.erase(sequence);
  all_promises_.erase(sequence);
}

void FarOrder::begin(Promise& promise, const Message& message) {
  const auto request = parse_write_request(message.first().bytes);
  if (message.header().command != Command::write || !request || promise.write) return;
  promise.write = true;
  promise.offset = request->offset;
  promise.length = static_cast<std::uint32_t>(request->data.size());
  Work& work = work_of(promise.file);
  work.others.erase(promise.sequence);
  work.writes.emplace(promise.offset, promise);
  work.longest_write = std::max<std::uint64_t>(work.longest_write, promise.length);
}

Taken FarOrder::on_request(TimePoint now, const Message& message, const Changes&) {
  Sequence sequence = next_sequence_++;
  if (message.single()) {
    const MessageId id = message.header().message_id;
    if (message.header().command == Command::cancel) {
      // Behind its target, wherever that is.
      const auto target = scopes_.find(id);
      if (message.header().is_async() || target == scopes_.end()) return Taken::no;
      Scope scope = target->second;
      if (scope.kind == Scope::Kind::range) scope.kind = Scope::Kind::file;
      hold({.message = message, .scope = std::move(scope), .sequence = sequence});
      return Taken::yes;
    }
    if (const auto promised = promises_.find(id); promised != promises_.end()) {
      sequence = promised->second.sequence;
      begin(promised->second, message);
      // Where the room is not known yet, because nothing could be asked before, the near half waits for it.
      if (const Open* open = side_.connection().open(promised->second.open)) room_.ask(now, *open);
    }
  }
  Scope scope = scope_of(message);
  if (scope.kind == Scope::Kind::nothing) return Taken::no;
  const bool barrier = is_barrier(scope);
  const auto work = barrier ? work_.end() : work_.find(scope.file.get());
  const bool behind_others =
      barrier ? !held_.empty() : !barriers_.empty() || (work != work_.end() && !work->second.held.empty());
  const bool behind_any = !barrier && work_.contains(side_.connection().any_file().get()) &&
                          before(work_.at(side_.connection().any_file().get()).promises, sequence);
  if (!behind_others && !behind_any && !waits(scope, sequence)) return Taken::no;
  hold({.message = message, .scope = std::move(scope), .sequence = sequence});
  return Taken::yes;
}

void FarOrder::hold(Held held) {
  held_bytes_ += held.message.frame.bytes.size();
  const Sequence sequence = held.sequence;
  held_.insert(sequence);
  if (held.message.single() && held.message.header().command != Command::cancel)
    scopes_.insert_or_assign(held.message.header().message_id, held.scope);
  held.message = kept(held.message);
  if (is_barrier(held.scope)) return barriers_.push_back(std::move(held));
  Work& work = work_of(held.scope.file);
  work.held.push_back(std::move(held));
  if (work.held.size() > 1) return;
  // What waits for promises of this file alone is looked at when one of those is done.
  if (!barriers_.empty()) {
    behind_barrier_.emplace(sequence, work.file);
  } else {
    behind_any_.emplace(sequence, work.file);
  }
}

void FarOrder::send(TimePoint now, std::deque<Held>& held) {
  const Held first = std::move(held.front());
  held.pop_front();
  held_.erase(first.sequence);
  held_bytes_ -= first.message.frame.bytes.size();
  if (first.message.single() && first.message.header().command != Command::cancel)
    scopes_.erase(first.message.header().message_id);
  side_.send(now, first.message);
}

// All held requests of one file that may be sent.
void FarOrder::send_first(TimePoint now, Work& work) {
  const auto any = work_.find(side_.connection().any_file().get());
  while (!work.held.empty()) {
    const Sequence sequence = work.held.front().sequence;
    if (!barriers_.empty() && barriers_.front().sequence < sequence) {
      behind_barrier_.emplace(sequence, work.file);
      return;
    }
    if (any != work_.end() && before(any->second.promises, sequence)) {
      behind_any_.emplace(sequence, work.file);
      return;
    }
    if (waits(work.held.front().scope, sequence)) return;
    send(now, work.held);
  }
}

void FarOrder::move_before(Heads& heads, std::optional<Sequence> end, std::vector<FileGroupRef>& to) {
  const auto last = end ? heads.lower_bound(*end) : heads.end();
  for (auto each = heads.begin(); each != last; ++each) to.push_back(each->second);
  heads.erase(heads.begin(), last);
}

// A promise of this file is done.
void FarOrder::release(TimePoint now, const FileGroupRef& file) {
  std::vector<FileGroupRef> some{file};
  for (;;) {
    const auto any = work_.find(side_.connection().any_file().get());
    const bool none = any == work_.end() || any->second.promises.empty();
    move_before(behind_any_, none ? std::nullopt : std::optional(*any->second.promises.begin()), some);
    for (const FileGroupRef& each : std::exchange(some, {})) {
      const auto work = work_.find(each.get());
      if (work == work_.end()) continue;
      send_first(now, work->second);
      if (work->second.promises.empty() && work->second.held.empty()) work_.erase(work);
    }
    // A request that waits for everything before it is the first of all.
    if (barriers_.empty() || barriers_.front().sequence != *held_.begin() ||
        waits(barriers_.front().scope, barriers_.front().sequence))
      break;
    send(now, barriers_);
    move_before(behind_barrier_, barriers_.empty() ? std::nullopt : std::optional(barriers_.front().sequence),
                some);
  }
}

void FarOrder::begin_own(std::uint64_t number, const FileName& name) {
  if (own_.size() >= kMostOwn || own_.contains(number)) return;
  const Promise own{.file = side_.connection().group_of(name), .sequence = next_sequence_++};
  add_promise(own.file, own.sequence);
  own_.emplace(number, own);
}

void FarOrder::end_own(TimePoint now, std::uint64_t number) {
  const auto own = own_.extract(number);
  if (own.empty()) return;
  remove_promise(own.mapped().file, own.mapped().sequence);
  release(now, own.mapped().file);
}

void FarOrder::done(TimePoint now, MessageId id, const Element& answer) {
  const auto found = promises_.find(id);
  const Promise promise = found->second;
  const auto written = parse_write_response(answer.bytes);
  const bool success = answer.header.status == Status::success;
  side_.out().tell(Kept{.message = id,
                        .status = static_cast<std::uint32_t>(answer.header.status),
                        .written = promise.write && success && written ? written->count : 0,
                        .credits = static_cast<std::uint16_t>(promise.credits + answer.header.credits)});
  remove_promise(promise.file, promise.sequence);
  if (promise.write) {
    Work& work = work_of(promise.file);
    const auto [first, last] = work.writes.equal_range(promise.offset);
    const auto entry =
        std::find_if(first, last, [&](const auto& each) { return each.second.sequence == promise.sequence; });
    if (entry != last) work.writes.erase(entry);
    room_.written(promise.open, promise.length);
  }
  promises_.erase(found);
  const auto through = promised_through_.find(promise.open);
  if (through != promised_through_.end() && --through->second == 0) promised_through_.erase(through);
  if (const Open* open = side_.connection().open(promise.open)) room_.ask(now, *open);
  release(now, promise.file);
  returns_.give_back(now, promise.open);
}

Taken FarOrder::on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) {
  if (returns_.takes_break(now, message)) return Taken::yes;
  bool taken = false;
  for (const Connection::Answered& each : outcome.answered) {
    const auto found = promises_.find(each.request.id);
    if (!each.element || found == promises_.end()) continue;
    // Promised are single requests only, and a server answers those singly.
    if (!message.single()) {
      side_.out().abort();
      return Taken::yes;
    }
    taken = true;
    if (each.interim) {
      found->second.credits =
          static_cast<std::uint16_t>(found->second.credits + each.element->header.credits);
    } else {
      done(now, each.request.id, *each.element);
    }
  }
  return taken ? Taken::yes : Taken::no;
}

void FarOrder::after_response(TimePoint now, const Connection::Outcome& outcome) {
  for (const Change& change : outcome.changes) {
    if (change.kind == Change::Kind::closed) returns_.give_back(now, change.open->key);
    if (change.kind == Change::Kind::opened && (change.open->caching & lease_state::write))
      room_.ask(now, *change.open);
  }
  for (const Connection::Answered& each : outcome.answered) {
    if (each.request.command != Command::write || each.interim) continue;
    if (const Open* open = side_.connection().open(each.request.file)) room_.ask(now, *open);
  }
}

Taken FarOrder::on_twin(TimePoint now, const TwinMessage& message, const Slice&) {
  if (const auto* promised = std::get_if<Promised>(&message)) {
    if (promises_.contains(promised->message) || promises_.size() >= Connection::kMostPending) {
      side_.out().abort();  // not sent by our near half
      return Taken::yes;
    }
    const Open* open = side_.connection().open(promised->open);
    const Promise promise{.open = promised->open,
                          .file = open ? open->group : side_.connection().any_file(),
                          .sequence = next_sequence_++};
    add_promise(promise.file, promise.sequence);
    ++promised_through_[promise.open];
    promises_.emplace(promised->message, promise);
    return Taken::yes;
  }
  if (const auto* broken = std::get_if<Broken>(&message)) {
    returns_.near_gives_back(now, broken->open);
    return Taken::yes;
  }
  return Taken::no;
}

}  // namespace longhaul::smb::smb2
