// SPDX-License-Identifier: Apache-2.0
// The near half's early answers to WRITE, CLOSE and what is asked of empty files, and how a late error
// reaches the client.
#include <algorithm>
#include <array>

#include "proxy/modules/smb/smb1/empty_file.h"
#include "proxy/modules/smb/smb1/near.h"

namespace longhaul::smb::smb1 {

namespace {

DiskTree disk_tree(const Open& open) { return DiskTree{std::uint64_t{open.uid} << 16 | open.tid}; }

// The server's answer as it will be, or was.
void answer_as(Outputs& out, const Header& request, Status status, std::uint32_t written_bytes,
               std::size_t most_bytes) {
  // [MS-CIFS] 2.2.6.9.2: EaErrorOffset.
  constexpr std::array<std::byte, 2> kNoErrorInAttributes{};
  if (status != Status::success || request.command == Command::flush)
    return out.to_lan(empty_reply(request, static_cast<std::uint32_t>(status)));
  if (request.command == Command::write_andx) return out.to_lan(write_reply(request, written_bytes));
  for (Slice& frame : trans2_reply(request, 0, kNoErrorInAttributes, {}, most_bytes))
    out.to_lan(std::move(frame));
}

}  // namespace

bool could_be_kept_back(const Open& open, const Header& header) {
  return open.may_write && open.may_cache_writes() && !open.settled && !open.write_through && !open.delete_on_close &&
         header.has_nt_status();  // late errors are NT status codes
}

bool may_be_promised(const Open& open, const Header& header, const WriteRequest& write) {
  constexpr std::uint64_t kMaxOffset = 1ull << 62;
  // Pipes set the other modes; some clients set kMessageStart for files too.
  return could_be_kept_back(open, header) && (write.mode & ~kMessageStart) == 0 && !write.data.empty() &&
         write.offset < kMaxOffset;
}

bool Near::write(const Frame& frame, const Message& message) {
  const auto write = parse_write_request(message, message.first());
  if (!write) return false;
  const Header& header = message.header;
  const Open* open = connection_.open(key_of(header.uid, header.tid, write->fid));
  const auto length = static_cast<std::uint32_t>(write->data.size());
  if (!open || !features(&config::Features::smb_write_behind) || !may_be_promised(*open, header, *write) ||
      !room_.has_room(disk_tree(*open), length))
    return false;
  const OpenKey key = open->key;
  drop(*open);
  questions_.changed(*open);
  looks_.drop();
  empty_.erase(key);
  const MessageNumber number = ++promised_;
  const auto verdict = promises_.promise(key, number, {write->offset, length});
  if (verdict == Promises::Verdict::refused) return false;
  room_.promised(disk_tree(*open), length);
  promised(key, number, frame, {header, length}, verdict);
  return true;
}

void Near::promised(const OpenKey& key, MessageNumber number, const Frame& frame, const Early& early,
                    Promises::Verdict verdict) {
  out_.tell(Promised{key, number});
  out_.pass_on(frame.bytes);
  writes_[number] = early;
  if (verdict == Promises::Verdict::now) answer_early(early);
}

// It takes no room on the disk.
bool Near::leave_empty(const Frame& frame, const Message& message) {
  const LeavesEmpty leaves = leaves_empty(message);
  const Open* open = leaves != LeavesEmpty::no ? connection_.open_of(message) : nullptr;
  const auto empty = open ? empty_.find(open->key) : empty_.end();
  if (empty == empty_.end() || !features(&config::Features::smb_write_behind) ||
      !could_be_kept_back(*open, message.header) || refuses_of_empty_)
    return false;
  // A FLUSH tells that what was asked before is done.
  if (message.header.command == Command::flush && promises_.waiting(open->key) != 0) return false;
  const bool sets_times = leaves == LeavesEmpty::with_times;
  if (sets_times && !open->may_set_times) return false;
  const MessageNumber number = ++promised_;
  const auto verdict = promises_.promise(open->key, number, {});
  if (verdict == Promises::Verdict::refused) return false;
  if (sets_times) empty->second = Loss::times;
  if (message.header.command != Command::flush) {
    drop(*open);
    questions_.changed(*open);
    looks_.drop();
  }
  promised(open->key, number, frame, {message.header, 0}, verdict);
  return true;
}

void Near::answer_early(const Early& early) {
  ++counters_.promises_made;
  counters_.promised_bytes += early.length;
  ++counters_.round_trips_saved;
  connection_.answered_here(number_of(early.header));
  answer_as(out_, early.header, Status::success, early.length, connection_.max_answer_bytes());
}

void Near::kept(const Kept& kept) {
  if (closes_.erase(kept.message) != 0) {
    ++(kept.status == 0 ? counters_.promises_kept : counters_.promises_failed);
    return;
  }
  const auto found = writes_.find(kept.message);
  if (found == writes_.end()) return;
  const Early early = found->second;
  writes_.erase(found);
  const auto status = static_cast<Status>(kept.status);
  const auto settled = promises_.kept(kept.message, status, kept.written);
  if (is_error(status) && early.header.command != Command::write_andx) refuses_of_empty_ = true;
  if (settled && promises_.waiting(settled->open) == 0 && !promises_.late_error(settled->open)) {
    if (const auto empty = empty_.find(settled->open); empty != empty_.end()) empty->second = Loss::nothing;
  }
  if (settled && settled->answered) {
    const bool good = status == Status::success && kept.written >= early.length;
    ++(good ? counters_.promises_kept : counters_.promises_failed);
    if (const Open* open = good ? nullptr : connection_.open(settled->open))
      lost_->refused(lost_file(*open),
                     {settled->range.offset, settled->range.offset + settled->range.length}, status);
  } else if (settled) {
    // SET_FILE_INFORMATION carries none: the next WRITE, FLUSH or CLOSE does.
    const auto carrier =
        early.header.command == Command::flush ? Promises::Carrier::flush : Promises::Carrier::write;
    const Status told =
        early.header.command == Command::trans2 ? status : promises_.settle(settled->open, carrier, status);
    if (told != status) told_late(settled->open);
    connection_.answered_here(number_of(early.header));
    answer_as(out_, early.header, told, kept.written, connection_.max_answer_bytes());
  }
  while (const auto next = promises_.poll_answerable()) {
    if (const auto waiting = writes_.find(*next); waiting != writes_.end()) answer_early(waiting->second);
  }
}

Slice Near::with_late_error(const Frame& frame, const Message& answer, const Pending& request,
                            const OpenKey& key) {
  const Promises::Carrier carrier = request.header.command == Command::write_andx ? Promises::Carrier::write
                                    : request.header.command == Command::flush    ? Promises::Carrier::flush
                                                                                  : Promises::Carrier::close;
  const auto status = static_cast<Status>(answer.header.status);
  const Status told = promises_.settle(key, carrier, status);
  if (told == status) return frame.bytes;
  told_late(key);
  return empty_reply(request.header, static_cast<std::uint32_t>(told));
}

// Under a batch oplock a client may keep a file open that its program has closed ([MS-CIFS] 3.2.4.18). It is
// the file's: a handle of the same name that hinders nobody may stay as long.
bool Near::keeps_handle(const Open& open) {
  if (open.may_cache_handle() || !open.looks || !open.name.exact) return open.may_cache_handle();
  return std::any_of(connection_.opens().begin(), connection_.opens().end(), [&](const auto& each) {
    const Open& other = each.second;
    return other.may_cache_handle() && other.uid == open.uid && other.name == open.name;
  });
}

// Nothing that the CLOSE could tell may be outstanding.
bool Near::close(const Frame& frame, const Message& message) {
  const auto close = parse_close_request(message.first());
  if (!close) return false;
  const Header& header = message.header;
  const Open* open = connection_.open(key_of(header.uid, header.tid, close->fid));
  if (!open || !features(&config::Features::smb_metadata) || !keeps_handle(*open) || open->delete_on_close ||
      open->changed || open->locked || (close->last_write != 0 && close->last_write != 0xFFFFFFFF) ||
      promises_.waiting(open->key) != 0 || promises_.failed(open->key) || promises_.late_error(open->key) ||
      !header.has_nt_status())
    return false;
  for (const auto& [number, read] : reads_)
    if (!open->looks && read.uid == header.uid && read.tid == header.tid)
      return false;  // perhaps of this file
  const OpenKey key = open->key;
  const MessageNumber number = ++promised_;
  out_.tell(Promised{key, number});
  out_.pass_on(frame.bytes);
  closes_.emplace(number, close->fid);
  ++counters_.promises_made;
  ++counters_.round_trips_saved;
  ++counters_.metadata_answers;
  connection_.answered_here(number_of(header));
  if (const auto closed = connection_.close(key)) over(*closed);
  out_.to_lan(empty_reply(header, 0));
  return true;
}

// ---- what a reset has lost

void Near::say_who() {
  if (lost_->number() == 0 || std::exchange(has_said_who_, true)) return;
  out_.tell(Remembers{lost_->number()});
}

void Near::told_late(const OpenKey& key) {
  ++counters_.late_errors;
  if (const Open* open = connection_.open(key)) lost_->told_late(lost_file(*open));
}

LostWrites::File Near::lost_file(const Open& open) const {
  return {.ends = ends_, .share = shares_.of(open.name.tid), .path = path_of(open.name.path)};
}

void Near::give_up(const LostWrites::File& file) {
  for (const OpenKey& key : promises_.owed())
    if (const Open* open = connection_.open(key); open && lost_file(*open) == file)
      return abort(Cause::link_lost);
}

void Near::lose(Cause cause) {
  for (const OpenKey& key : promises_.owed()) {
    const auto empty = empty_.find(key);
    if (empty != empty_.end() && empty->second == Loss::nothing) continue;
    const Open* open = connection_.open(key);
    if (!open) continue;
    const bool refused = promises_.outstanding_bytes(key) == 0;
    lost_->add(lost_file(*open), {.cause = refused ? Cause::refused : cause,
                                  .ranges = promises_.outstanding_ranges(key)});
  }
  promises_.cut_off();
}

// A client that was reset and opens the file again to go on with it: its program is to hear of the loss.
bool Near::goes_on_with_lost(const Message& message) {
  const MessageNumber number = number_of(message.header);
  const Pending* pending = connection_.pending(number);
  if (!pending || !pending->opening) return false;
  const LostWrites::File file = lost_file(pending->opening->open);
  const LostWrites::Use use = pending->opening->use;
  if (use == LostWrites::Use::replaces || !telling_.has(file, use)) return false;
  telling_.told(file, use);
  connection_.answered_here(number);
  out_.to_lan(empty_reply(message.header, static_cast<std::uint32_t>(Status::lost_writebehind_data)));
  return true;
}

}  // namespace longhaul::smb::smb1
