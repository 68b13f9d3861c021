// SPDX-License-Identifier: Apache-2.0
// The near half's early answers to WRITE and CLOSE, and how a late error reaches the client. FLUSH and
// requests that set a file's attributes or size always wait for the server.
#include <algorithm>

#include "proxy/modules/promises/size_limit.h"
#include "proxy/modules/smb/smb1/near.h"

namespace longhaul::smb::smb1 {

namespace {

DiskTree disk_tree(const Open& open) { return DiskTree{std::uint64_t{open.uid} << 16 | open.tid}; }

// The server's answer in advance, or afterwards.
void answer_as(Outputs& out, const Header& request, Status status, std::uint32_t written_bytes) {
  if (status != Status::success) return out.to_lan(empty_reply(request, static_cast<std::uint32_t>(status)));
  out.to_lan(write_reply(request, written_bytes));
}

}  // namespace

bool may_be_promised(const Open& open, const Header& header, const WriteRequest& write) {
  if (!open.may_write || open.unnamed || !open.may_cache_writes() || open.settled || open.write_through ||
      open.delete_on_close)
    return false;
  if (!header.has_nt_status()) return false;  // late errors are NT status codes
  // Pipes set the other modes; some clients set kMessageStart for files too.
  return (write.mode & ~kMessageStart) == 0 && !write.data.empty() &&
         ends_within_limits(write.offset, static_cast<std::uint32_t>(write.data.size()),
                            open.confirmed_bytes);
}

void Near::active(TimePoint now, const Open& open) {
  settled_.active(now, open);
  if (features(&Features::write_behind) && may_be_written_behind(open) && !open.settled &&
      policy_.may_allow(surroundings_.features) &&
      (open.on_behalf || surroundings_.features.write_behind_cached))
    live_.mark(open.key, lost_file(open));
}

void Near::review_undecided() {
  if (undecided_.review(promises_, [&](const OpenKey& key) { return live_.is_marked(key); })) answer_held();
}

// As in smb2/near_writes.cc.
void Near::answer_held() {
  if (stops_ || files_.may_be_misnamed() || lost_->live().has_unguarded(ends_)) return;
  while (const auto next = promises_.poll_answerable())
    if (const auto waiting = writes_.find(*next); waiting != writes_.end()) answer_early(waiting->second);
}

bool Near::write(const Frame& frame, const Message& message) {
  const auto write = parse_write_request(message, message.first());
  if (!write) return false;
  const Header& header = message.header;
  Open* open = connection_.open(key_of(header.uid, header.tid, write->fid));
  const auto length = static_cast<std::uint32_t>(write->data.size());
  if (!open || doomed_ || stops_ || !features(&Features::write_behind) || !may_be_promised(*open, header, *write) ||
      !policy_.allows(*open, surroundings_.features, counters_) || !room_.has_room(disk_tree(*open), length))
    return false;
  // Its mark would have the old name at one of the halves.
  if (files_.may_be_misnamed()) return false;
  if (lost_->live().has_unguarded(ends_)) return policy_.declines(*open, reasons::smb_other_paths, counters_);
  const OpenKey key = open->key;
  const auto marked = live_.is_marked(key);
  if (!marked.value_or(true)) return policy_.declines(*open, reasons::smb_not_recorded, counters_);
  if (!marked && undecided_.is_full()) return false;
  drop(*open);
  questions_.changed(*open);
  searches_.changed();
  looks_.drop();
  const MessageNumber number = ++promised_;
  const auto verdict =
      promises_.promise(key, number, {write->offset, length},
                        marked ? Promises::Conditions::fulfilled : Promises::Conditions::open_question);
  if (verdict == Promises::Verdict::refused) return false;
  if (!marked) undecided_.hold(number, key);
  room_.promised(disk_tree(*open), length);
  const Early early{header, length};
  out_.tell(Promised{key, number});
  out_.pass_on(frame.bytes);
  writes_[number] = early;
  if (verdict == Promises::Verdict::now) answer_early(early);
  return true;
}

void Near::answer_early(const Early& early) {
  ++counters_.promises_made;
  counters_.promised_bytes += early.length;
  ++counters_.round_trips_saved;
  connection_.answered_here(number_of(early.header));
  answer_as(out_, early.header, Status::success, early.length);
}

void Near::kept(const Kept& kept) {
  if (const auto closing = closes_.find(kept.message); closing != closes_.end()) {
    const Closing closed = std::move(closing->second);
    closes_.erase(closing);
    ++(kept.status == 0 ? counters_.promises_kept : counters_.promises_failed);
    if (kept.status == 0) return;
    // For the client the file is closed, and complete. If it is not, only a reset can tell.
    if (closed.written) lost_->refused(*closed.written, closed.range, kept.status);
    return abort(Cause::server_gone);
  }
  const auto found = writes_.find(kept.message);
  if (found == writes_.end()) return;
  const Early early = found->second;
  writes_.erase(found);
  const auto status = static_cast<Status>(kept.status);
  const auto settled = promises_.kept(kept.message, status, kept.written);
  Open* through = settled ? connection_.open(settled->open) : nullptr;
  if (through && status == Status::success)
    through->confirm(settled->range.offset, std::min(early.length, kept.written));
  if (settled && settled->answered) {
    const bool good = status == Status::success && kept.written >= early.length;
    ++(good ? counters_.promises_kept : counters_.promises_failed);
    if (through && !good)
      lost_->refused(lost_file(*through),
                     {settled->range.offset, settled->range.offset + settled->range.length},
                     static_cast<std::uint32_t>(status));
  } else if (settled) {
    if (promises_.unreported(settled->open)) told_late(settled->open);
    const Status told = promises_.settle(settled->open, status);
    connection_.answered_here(number_of(early.header));
    answer_as(out_, early.header, told, kept.written);
  }
  answer_held();
  reset_if_doomed();
}

// WRITE, FLUSH and all that closes a file: a program takes their success for that of what it wrote. A FLUSH
// of no open that we know may be one of all files ([MS-CIFS] 2.2.4.6: FID 0xFFFF).
void Near::note_carrier(const Message& message) {
  carriers_.erase(number_of(message.header));  // of an earlier request that was never answered
  // A raw transfer has answers of its own.
  if (!has_answer(message) || is_raw(message) || carriers_.size() >= kMostRemembered) return;
  const Command command = message.header.command;
  std::optional<OpenKey> meant;
  if (const Open* open = connection_.open_of(message);
      open && (writes_data(command) || command == Command::flush))
    meant = open->key;
  if (const Pending* pending = connection_.pending(number_of(message.header)); pending && !meant)
    for (const std::uint16_t fid : pending->closing)
      if (const Open* open = connection_.open_of(fid)) meant = open->key;
  if (meant || command == Command::flush) carriers_.insert_or_assign(number_of(message.header), meant);
}

// The answer that goes to the client; none: some libraries ignore the status of a CLOSE, so if only that
// could report a loss its answer is withheld, and the connection reset when all other promises are settled.
std::optional<Slice> Near::with_late_error(const Frame& frame, const Message& answer, const Pending& request,
                                           const std::optional<OpenKey>& of) {
  const auto status = static_cast<Status>(answer.header.status);
  std::vector<OpenKey> meant;
  if (of) meant.push_back(*of);
  if (!of)
    for (const auto& [fid, open] : connection_.opens()) meant.push_back(open.key);
  bool is_late = false, withheld = false;
  for (const OpenKey& key : meant) {
    const bool is_news = promises_.unreported(key);
    const bool differs = promises_.settle(key, status) != status;
    const bool only_close_tells = is_news && differs && !request.closing.empty();
    if (is_news) told_late(key, only_close_tells ? Told::reset : Told::late_error);
    is_late |= differs;
    withheld |= only_close_tells;
  }
  doomed_ |= withheld;
  if (withheld) return std::nullopt;
  if (!is_late) return frame.bytes;
  return empty_reply(request.header, static_cast<std::uint32_t>(Status::lost_writebehind_data));
}

void Near::reset_if_doomed() {
  if (doomed_ && promises_.waiting() == 0) abort(Cause::flow_cut);
}

// Under a batch oplock a client may keep a file open that its program has closed ([MS-CIFS] 3.2.4.18). So a
// handle of the same name that hinders no other client may stay as long.
bool Near::keeps_handle(const Open& open) {
  if (open.may_cache_handle() || !open.looks || !open.name.exact) return open.may_cache_handle();
  return std::any_of(connection_.opens().begin(), connection_.opens().end(), [&](const auto& each) {
    const Open& other = each.second;
    return other.may_cache_handle() && other.uid == open.uid && other.name == open.name;
  });
}

// No loss that the CLOSE could report may be outstanding, also of what the server has only accepted: unless a
// FLUSH has told it already, a CLOSE may be the first to tell that the disk is full or has failed.
bool Near::close(const Frame& frame, const Message& message) {
  const auto close = parse_close_request(message.first());
  if (!close) return false;
  const Header& header = message.header;
  const Open* open = connection_.open(key_of(header.uid, header.tid, close->fid));
  if (!open || !features(&Features::metadata) || !keeps_handle(*open) || open->delete_on_close ||
      open->changed || open->writes != open->flushed_writes || open->locked ||
      (close->last_write != 0 && close->last_write != 0xFFFFFFFF) || promises_.waiting(open->key) != 0 ||
      promises_.failed(open->key) || !header.has_nt_status())
    return false;
  for (const auto& [number, read] : reads_)
    if (!open->looks && read.uid == header.uid && read.tid == header.tid)
      return false;  // perhaps of this file
  const OpenKey key = open->key;
  const MessageNumber number = ++promised_;
  out_.tell(Promised{key, number});
  out_.pass_on(frame.bytes);
  Closing closing{.fid = close->fid, .range = {0, std::max<std::uint64_t>(open->confirmed_bytes, 1)}};
  if (open->writes != 0) closing.written = lost_file(*open);
  closes_.emplace(number, std::move(closing));
  ++counters_.promises_made;
  ++counters_.round_trips_saved;
  ++counters_.metadata_answers;
  connection_.answered_here(number_of(header));
  if (const auto closed = connection_.close(key)) over(*closed);
  out_.to_lan(empty_reply(header, 0));
  return true;
}

// ---- losses by a reset

void Near::say_who() {
  if (lost_->number() == 0 || std::exchange(has_said_who_, true)) return;
  out_.tell(Remembers{lost_->number(), lost_->marks().number_before()});
}

void Near::told_late(const OpenKey& key, Told how) {
  ++counters_.late_errors;
  if (const Open* open = connection_.open(key)) lost_->told_late(lost_file(*open), how);
}

std::optional<LostWrites::File> Near::file_of(const OpenKey& key) {
  const Open* open = connection_.open(key);
  return open ? std::optional(lost_file(*open)) : std::nullopt;
}

void Near::client_goes_on() {
  for (const MessageNumber answer : telling_.client_goes_on()) out_.tell(LossRead{answer});
}

// A client that was reset opens the file again to continue with it, or takes it for finished and renames it:
// its program must learn of the loss. The error ends a chain.
bool Near::goes_on_with_lost(const Message& message) {
  const auto wanted = wanted_by(message);
  if (!wanted) return false;
  if (!telling_.tells(files_.of(wanted->name), wanted->use)) {
    say_who();  // the far half may have to know before it tells
    return false;
  }
  connection_.answered_here(number_of(message.header));
  out_.to_lan(empty_reply(message.header, static_cast<std::uint32_t>(Status::lost_writebehind_data)));
  return true;
}

// The same where nothing may be answered.
bool Near::is_told_by_reset(const Message& message) {
  const auto wanted = wanted_by(message);
  if (!wanted || !telling_.tells_by_reset(files_.of(wanted->name), wanted->use)) return false;
  abort(Cause::flow_cut);
  return true;
}

}  // namespace longhaul::smb::smb1
