// SPDX-License-Identifier: Apache-2.0
// See far_order.h. Waiting here costs a round trip on the server's LAN at most: what was promised before a
// request has come, and was sent to the server, before it.
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

bool FarOrder::same(const std::optional<FileName>& a, const std::optional<FileName>& b) {
  return !a || !b || may_be_same_file(*a, *b);
}

FarOrder::Scope FarOrder::scope_of(const Message& message) const {
  using Kind = Scope::Kind;
  const Header& header = message.header();
  const Pending* request = side_.connection().pending(header.message_id);
  if (!message.single()) return {};
  if (header.command == Command::cancel || header.command == Command::oplock_break) request = nullptr;
  const auto of_file = [&](Kind kind) {
    const Open* open = request ? side_.connection().open(request->file) : nullptr;
    Scope scope{.kind = kind};
    if (open) scope.name = open->name;
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
      if (request && request->opening) scope.name = request->opening->name;
      return scope;
    }
    case Command::read: {
      // Up to any end: a write behind what is read may move the end of the file.
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

bool FarOrder::overlaps(const Work& work, const Scope& scope, Sequence before) const {
  const std::uint64_t from = scope.offset - std::min(scope.offset, work.longest_write);
  for (auto each = work.writes.lower_bound(from); each != work.writes.end(); ++each) {
    if (each->first >= scope.offset && each->first - scope.offset >= scope.length) return false;
    const Promise& promise = promises_.at(each->second);
    if (promise.sequence < before &&
        (each->first >= scope.offset || scope.offset - each->first < promise.length)) {
      return true;
    }
  }
  return false;
}

bool FarOrder::waits(const Scope& scope, Sequence before) const {
  if (scope.kind == Scope::Kind::nothing) return false;
  for (const auto& [key, work] : work_) {
    if (work.promises.begin()->first >= before) continue;
    if (scope.kind == Scope::Kind::everything) return true;
    if (!same(scope.name, work.name)) continue;
    if (scope.kind == Scope::Kind::file || overlaps(work, scope, before)) return true;
    // A CLOSE on its way: through this open nothing comes any more, and for others the file is still open.
    if (work.promises.size() != work.writes.size()) return true;
  }
  return std::any_of(held_.begin(), held_.end(), [&](const Held& held) {
    if (held.sequence >= before) return false;
    return scope.kind == Scope::Kind::everything || held.scope.kind == Scope::Kind::everything ||
           same(scope.name, held.scope.name);
  });
}

bool FarOrder::busy(const FileName& name) const {
  return std::any_of(work_.begin(), work_.end(), [&](const auto& each) {
    return !each.second.name || may_be_same_file(*each.second.name, name);
  });
}

void FarOrder::begin(Promise& promise, MessageId id, const Message& message) {
  const auto request = parse_write_request(message.first().bytes);
  if (message.header().command != Command::write || !request) return;
  promise.write = true;
  promise.offset = request->offset;
  promise.length = static_cast<std::uint32_t>(request->data.size());
  Work& work = work_[promise.open];
  work.writes.emplace(promise.offset, id);
  work.longest_write = std::max<std::uint64_t>(work.longest_write, promise.length);
}

Taken FarOrder::on_request(TimePoint now, const Message& message, const Changes&) {
  Sequence sequence = next_sequence_++;
  if (message.single()) {
    const MessageId id = message.header().message_id;
    if (message.header().command == Command::cancel) {
      // Behind its target, wherever that is.
      const auto target = std::find_if(held_.begin(), held_.end(), [&](const Held& held) {
        return held.message.single() && held.message.header().message_id == id &&
               held.message.header().command != Command::cancel;
      });
      if (message.header().is_async() || target == held_.end()) return Taken::no;
      Scope scope = target->scope;
      scope.kind = Scope::Kind::file;
      hold({.message = message, .scope = std::move(scope), .sequence = sequence});
      return Taken::yes;
    }
    if (const auto promised = promises_.find(id); promised != promises_.end()) {
      sequence = promised->second.sequence;
      begin(promised->second, id, message);
      // Where the room is not known yet, because nothing could be asked before, the near half waits for it.
      if (const Open* open = side_.connection().open(promised->second.open)) ask_room(now, *open);
    }
  }
  Scope scope = scope_of(message);
  if (!waits(scope, sequence)) return Taken::no;
  hold({.message = message, .scope = std::move(scope), .sequence = sequence});
  return Taken::yes;
}

namespace {

// No server gives such numbers to sessions and trees.
OpenKey own_key(std::uint64_t number) {
  OpenKey key{.session = ~std::uint64_t{0}, .tree = ~std::uint32_t{0}};
  store_le(key.id.data(), number);
  return key;
}

}  // namespace

void FarOrder::begin_own(std::uint64_t number, const FileName& name) {
  Work& work = work_[own_key(number)];
  work.name = name;
  work.promises.emplace(next_sequence_++, kUnsolicited);
}

void FarOrder::end_own(TimePoint now, std::uint64_t number) {
  if (work_.erase(own_key(number)) != 0) release(now);
}

void FarOrder::hold(Held held) {
  held_bytes_ += held.message.frame.bytes.size();
  held_.push_back(std::move(held));
}

void FarOrder::release(TimePoint now) {
  // Front to back: what is sent may be what those behind it waited for, but what they wait for never is
  // behind them.
  for (std::size_t i = 0; i < held_.size();) {
    if (waits(held_[i].scope, held_[i].sequence)) {
      ++i;
      continue;
    }
    const Held held = std::move(held_[i]);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    held_bytes_ -= held.message.frame.bytes.size();
    side_.send(now, held.message);
  }
  give_back(now);
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
  Work& work = work_[promise.open];
  work.promises.erase(promise.sequence);
  if (promise.write) {
    const auto [first, last] = work.writes.equal_range(promise.offset);
    const auto entry = std::find_if(first, last, [&](const auto& each) { return each.second == id; });
    if (entry != last) work.writes.erase(entry);
    questions_.written(disk_tree(promise.open.session, promise.open.tree), promise.length);
  }
  if (work.promises.empty()) work_.erase(promise.open);
  promises_.erase(found);
  if (const Open* open = side_.connection().open(promise.open)) ask_room(now, *open);
}

Taken FarOrder::on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) {
  if (take_break(message)) return Taken::yes;
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
  if (taken) release(now);
  return taken ? Taken::yes : Taken::no;
}

void FarOrder::after_response(TimePoint now, const Connection::Outcome& outcome) {
  for (const Change& change : outcome.changes) {
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
    const Sequence sequence = next_sequence_++;
    promises_[promised->message] = Promise{.open = promised->open, .sequence = sequence};
    Work& work = work_[promised->open];
    if (const Open* open = side_.connection().open(promised->open)) work.name = open->name;
    work.promises.emplace(sequence, promised->message);
    return Taken::yes;
  }
  if (const auto* broken = std::get_if<Broken>(&message)) {
    for (GivingBack& each : giving_back_) each.near_done |= each.open == broken->open;
    give_back(now);
    return Taken::yes;
  }
  return Taken::no;
}

// ---- room on the disk

void FarOrder::ask_room(TimePoint now, const Open& open) {
  if (!side_.surroundings().features.smb_write_behind || !open.disk_file || !open.may_write()) return;
  if (open.closing || open.may_be_replayed || !(open.caching & lease_state::write)) return;
  const DiskTree disk = disk_tree(open.session, open.tree);
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

// ---- oplocks that the client does not know of ([MS-SMB2] section 2.2.23.1)

bool FarOrder::take_break(const Message& message) {
  if (!message.single() || !message.header().is_unsolicited()) return false;
  const auto notification = parse_break(message.first().bytes);
  const auto* oplock = notification ? std::get_if<OplockBreak>(&*notification) : nullptr;
  const Open* open = oplock ? side_.connection().open(oplock->file) : nullptr;
  if (!open || !open->on_behalf) return false;
  if (open->closing && work_.contains(open->key)) return true;  // its CLOSE is the acknowledgement
  ++side_.counters().breaks;
  side_.out().tell(smb::Break{.open = open->key, .level = static_cast<std::uint8_t>(oplock->level)});
  if (open->break_pending)
    giving_back_.push_back({.open = open->key, .level = oplock->level, .near_done = ended_});
  return true;
}

// All that was promised lies before the end.
void FarOrder::stream_ended(TimePoint now) {
  ended_ = true;
  for (GivingBack& each : giving_back_) each.near_done = true;
  give_back(now);
}

// Nothing can have been promised under a reader's. Who may write may have been promised something that is on
// its way.
std::optional<TimePoint> FarOrder::alone_at(const Open& open) const {
  return open.may_write() ? std::nullopt : out_of_contact(side_.surroundings());
}

std::optional<TimePoint> FarOrder::next_timeout() const {
  std::optional<TimePoint> first;
  for (const GivingBack& each : giving_back_) {
    const Open* open = each.near_done ? nullptr : side_.connection().open(each.open);
    const auto at = open ? alone_at(*open) : std::nullopt;
    if (at && (!first || *at < *first)) first = at;
  }
  return first;
}

void FarOrder::give_back(TimePoint now) {
  for (GivingBack& each : giving_back_) {
    const Open* open = side_.connection().open(each.open);
    if (const auto at = open ? alone_at(*open) : std::nullopt) each.near_done |= now >= *at;
  }
  std::erase_if(giving_back_, [&](const GivingBack& each) {
    Open* open = side_.connection().open(each.open);
    if (!open || open->closing) return true;  // its CLOSE gives back everything
    if (!each.near_done || work_.contains(each.open)) return false;
    const OplockBreak acknowledgement{.level = each.level, .file = open->file};
    const bool sent =
        side_.inject_owed(now, open->session, open->tree, [acknowledgement](const RequestHead& head) {
          return build_oplock_acknowledgement(head, acknowledgement);
        });
    if (!sent) return false;
    open->break_pending = false;
    return true;
  });
}

}  // namespace longhaul::smb::smb2
