// SPDX-License-Identifier: Apache-2.0
// The near half's early answers to WRITE and CLOSE, and how a late error reaches the client.
#include <algorithm>

#include "proxy/modules/smb/smb1/near.h"

namespace longhaul::smb::smb1 {

namespace {

DiskTree disk_tree(const Open& open) { return DiskTree{std::uint64_t{open.uid} << 16 | open.tid}; }

}  // namespace

bool may_be_promised(const Open& open, const Header& header, const WriteRequest& write) {
  constexpr std::uint64_t kMaxOffset = 1ull << 62;
  // Pipes set the other modes; some clients set kMessageStart for files too.
  return open.may_write && open.may_cache_writes() && !open.write_through && !open.delete_on_close &&
         (write.mode & ~kMessageStart) == 0 && !write.data.empty() && write.offset < kMaxOffset &&
         header.has_nt_status();  // late errors are NT status codes
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
  const MessageNumber number = ++promised_;
  const auto verdict = promises_.promise(key, number, {write->offset, length});
  if (verdict == Promises::Verdict::refused) return false;
  const Early early{header, length};
  room_.promised(disk_tree(*open), length);
  out_.tell(Promised{key, number});
  out_.pass_on(frame.bytes);
  writes_[number] = early;
  if (verdict == Promises::Verdict::now) answer_write(early);
  return true;
}

void Near::answer_write(const Early& early) {
  ++counters_.promises_made;
  counters_.promised_bytes += early.length;
  ++counters_.round_trips_saved;
  connection_.answered_here(number_of(early.header));
  out_.to_lan(write_reply(early.header, early.length));
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
  if (settled && settled->answered) {
    const bool good = status == Status::success && kept.written >= early.length;
    ++(good ? counters_.promises_kept : counters_.promises_failed);
  } else if (settled) {
    const Status told = promises_.settle(settled->open, Promises::Carrier::write, status);
    if (told != status) ++counters_.late_errors;
    connection_.answered_here(number_of(early.header));
    out_.to_lan(told == Status::success ? write_reply(early.header, kept.written)
                                        : empty_reply(early.header, static_cast<std::uint32_t>(told)));
  }
  while (const auto next = promises_.poll_answerable()) {
    if (const auto waiting = writes_.find(*next); waiting != writes_.end()) answer_write(waiting->second);
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
  ++counters_.late_errors;
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

void Near::learn_share(const Message& message) {
  for (const Block& block : message.blocks) {
    if (block.command != Command::tree_connect_andx) continue;
    if (const auto connect = parse_tree_connect_request(block, message.header))
      connecting_[number_of(message.header)] = file_name(0, connect->path, message.header.is_unicode()).path;
  }
}

LostWrites::File Near::lost_file(const Open& open) const {
  LostWrites::File file{.client = client_, .path = open.name.path};
  if (const auto share = shares_.find(open.name.tid); share != shares_.end()) file.share = share->second;
  return file;
}

void Near::lose() {
  for (const OpenKey& key : promises_.owed())
    if (const Open* open = connection_.open(key)) lost_->add(lost_file(*open));
}

// A client that was reset and opens the file again to go on with it: its program is to hear of the loss.
bool Near::goes_on_with_lost(const Message& message) {
  const MessageNumber number = number_of(message.header);
  const Pending* pending = connection_.pending(number);
  if (!pending || !pending->opening || !pending->opening->open.may_write) return false;
  if (!lost_->take(lost_file(pending->opening->open))) return false;
  // Who begins the file anew loses nothing.
  if (!pending->opening->keeps_data) return false;
  connection_.answered_here(number);
  out_.to_lan(empty_reply(message.header, static_cast<std::uint32_t>(Status::lost_writebehind_data)));
  return true;
}

}  // namespace longhaul::smb::smb1
