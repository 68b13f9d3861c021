// SPDX-License-Identifier: Apache-2.0
// See far_order.h. Waiting here costs at most a round trip on the server's LAN: promises made before a
// request have arrived, and were sent to the server, before it.
#include "proxy/modules/smb/smb2/far_order.h"

#include <algorithm>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb2/near_writes.h"

namespace longhaul::smb::smb2 {
namespace {

// [MS-FSCC] 2.5.4, FileFsFullSizeInformation: TotalAllocationUnits, CallerAvailableAllocationUnits,
// ActualAvailableAllocationUnits, SectorsPerAllocationUnit, BytesPerSector.
constexpr std::uint32_t kFullSizeBytes = 32;

std::optional<std::uint64_t> available_bytes(Bytes full_size) {
  if (full_size.size() < kFullSizeBytes) return std::nullopt;
  const std::uint64_t units = load_le<std::uint64_t>(full_size, 8);
  const std::uint64_t unit_bytes =
      std::uint64_t{load_le<std::uint32_t>(full_size, 24)} * load_le<std::uint32_t>(full_size, 28);
  if (unit_bytes == 0) return std::nullopt;
  return units > ~std::uint64_t{0} / unit_bytes ? ~std::uint64_t{0} : units * unit_bytes;
}

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
      // If the room is unknown, because it could not be queried before, the near half waits for it.
      if (const Open* open = side_.connection().open(promised->second.open)) ask_room(now, *open);
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
  // Requests that wait for promises of this file alone are examined when one of those is done.
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

namespace {

constexpr std::size_t kMostOwn = 1024;

}  // namespace

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
    questions_.written(disk_tree(promise.open.session, promise.open.tree), promise.length);
  }
  promises_.erase(found);
  const auto through = promised_through_.find(promise.open);
  if (through != promised_through_.end() && --through->second == 0) promised_through_.erase(through);
  if (const Open* open = side_.connection().open(promise.open)) ask_room(now, *open);
  release(now, promise.file);
  give_back(now, promise.open);
}

Taken FarOrder::on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) {
  if (take_break(now, message)) return Taken::yes;
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
    if (change.kind == Change::Kind::closed) give_back(now, change.open->key);
    if (change.kind == Change::Kind::opened && (change.open->caching & lease_state::write))
      ask_room(now, *change.open);
  }
  for (const Connection::Answered& each : outcome.answered) {
    if (each.request.command != Command::write || each.interim) continue;
    if (const Open* open = side_.connection().open(each.request.file)) ask_room(now, *open);
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
    if (const auto giving = giving_back_.find(broken->open); giving != giving_back_.end()) {
      near_is_done(giving->second);
      give_back(now, broken->open);
    }
    return Taken::yes;
  }
  return Taken::no;
}

// ---- room on the disk

void FarOrder::ask_room(TimePoint now, const Open& open) {
  const Features& features = side_.surroundings().features;
  if (!features.write_behind || !open.disk_file || !open.may_write() || open.durable) return;
  if (!open.on_behalf && !features.write_behind_cached) return;
  if (open.closing || open.may_be_replayed || !(open.caching & lease_state::write)) return;
  const DiskTree disk = disk_tree(open.session, open.tree);
  if (!side_.has_only_path(now, open)) return;  // nothing is promised
  if (!side_.can_inject(1) || !questions_.ask_for(disk, now)) return;
  const QueryInfoRequest question{.type = InfoType::file_system,
                                  .info_class = fs_info::full_size,
                                  .output_bytes = kFullSizeBytes,
                                  .file = open.file};
  const bool sent = side_.inject(
      now, open.session, open.tree, 1,
      [question](const RequestHead& head) { return build_query_info_request(head, question); },
      [this, disk](TimePoint, const Frame&, const Element& answer) {
        if (answer.header.status == Status::file_closed) return questions_.not_asked(disk);
        const auto response = parse_buffer_response(answer.bytes);
        const bool good = answer.header.status == Status::success && response;
        if (const auto told =
                questions_.answered(disk, good ? available_bytes(response->buffer) : std::nullopt)) {
          side_.out().tell(Room{.session = disk.session,
                                .tree = disk.tree,
                                .available_bytes = told->available_bytes,
                                .counted_bytes = told->counted_bytes});
        }
      });
  if (!sent) questions_.not_asked(disk);
}

// ---- oplocks that are hidden from the client ([MS-SMB2] section 2.2.23.1)

bool FarOrder::take_break(TimePoint now, const Message& message) {
  if (!message.single() || !message.header().is_unsolicited()) return false;
  const auto notification = parse_break(message.first().bytes);
  const auto* oplock = notification ? std::get_if<OplockBreak>(&*notification) : nullptr;
  const Open* open = oplock ? side_.connection().open(oplock->file) : nullptr;
  if (!open || !open->on_behalf) return false;
  if (open->closing && promised_through_.contains(open->key))
    return true;  // its CLOSE is the acknowledgement
  ++side_.counters().breaks;
  side_.out().tell(smb::Break{.open = open->key, .level = static_cast<std::uint8_t>(oplock->level)});
  if (!open->break_pending) return true;
  GivingBack& giving = giving_back_[open->key];
  near_is_done(giving);
  // Under a shared oplock nothing can have been promised. Under an exclusive one promises may be under way.
  giving = {.level = oplock->level,
            .near_done = ended_,
            .alone = !ended_ && !open->may_write(),
            .fence = now + kOplockFence};
  alone_ += giving.alone ? 1 : 0;
  drop_done_fences();
  if (!ended_ && !giving.alone) fences_.emplace_back(giving.fence, open->key);
  return true;
}

void FarOrder::near_is_done(GivingBack& giving) {
  giving.near_done = true;
  alone_ -= std::exchange(giving.alone, false) ? 1 : 0;
}

// All promises precede the end.
void FarOrder::stream_ended(TimePoint now) {
  ended_ = true;
  for (auto& [open, giving] : giving_back_) near_is_done(giving);
  give_back_all(now);
}

void FarOrder::drop_done_fences() {
  for (; !fences_.empty(); fences_.pop_front()) {
    const auto giving = giving_back_.find(fences_.front().second);
    const bool same = giving != giving_back_.end() && giving->second.fence == fences_.front().first;
    if (same && !giving->second.near_done) return;
  }
}

std::optional<TimePoint> FarOrder::next_timeout() const {
  auto at = alone_ == 0 ? std::nullopt : out_of_contact(side_.surroundings());
  if (!fences_.empty() && (!at || fences_.front().first < *at)) at = fences_.front().first;
  return at;
}

void FarOrder::on_timeout(TimePoint now) {
  drop_done_fences();
  if (!fences_.empty() && fences_.front().first <= now) {
    fences_.clear();
    return side_.fence();
  }
  const auto alone_at = alone_ == 0 ? std::nullopt : out_of_contact(side_.surroundings());
  if (!alone_at || now < *alone_at) return;
  for (auto& [open, giving] : giving_back_)
    if (giving.alone) near_is_done(giving);
  give_back_all(now);
}

void FarOrder::on_ids_freed(TimePoint now) {
  for (const OpenKey& open : std::exchange(back_unsent_, {})) give_back(now, open);
}

void FarOrder::give_back_all(TimePoint now) {
  std::vector<OpenKey> opens;
  for (const auto& [open, giving] : giving_back_) opens.push_back(open);
  for (const OpenKey& open : opens) give_back(now, open);
}

void FarOrder::give_back(TimePoint now, const OpenKey& key) {
  const auto found = giving_back_.find(key);
  if (found == giving_back_.end()) return;
  GivingBack& giving = found->second;
  Open* open = side_.connection().open(key);
  if (open && !open->closing) {  // its CLOSE gives back everything
    if (!giving.near_done || promised_through_.contains(key)) return;
    const OplockBreak acknowledgement{.level = giving.level, .file = open->file};
    const bool sent =
        side_.inject_owed(now, open->session, open->tree, [acknowledgement](const RequestHead& head) {
          return build_oplock_acknowledgement(head, acknowledgement);
        });
    if (!sent) {
      back_unsent_.insert(key);
      return;
    }
    open->break_pending = false;
  }
  near_is_done(giving);
  giving_back_.erase(found);
}

}  // namespace longhaul::smb::smb2
