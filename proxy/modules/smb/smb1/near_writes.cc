// SPDX-License-Identifier: Apache-2.0
// See near_writes.h.
#include "proxy/modules/smb/smb1/near_writes.h"

#include <algorithm>

#include "proxy/modules/promises/size_limit.h"
#include "proxy/modules/smb/smb1/builders.h"
#include "proxy/modules/smb/smb1/raw_transfer.h"

namespace longhaul::smb::smb1 {

namespace {

DiskTree disk_tree(const Open& open) { return DiskTree{std::uint64_t{open.uid} << 16 | open.tid}; }

// The response in place of the server's, early or late.
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

void NearWrites::on_surroundings() {
  promises_.set_line_rate(static_cast<double>(local_.surroundings().line_bytes_per_second));
  answer_held();
  review_undecided();
}

void NearWrites::active(TimePoint now, const Open& open) {
  const Features& features = local_.surroundings().features;
  settled_.active(now, open);
  if (local_.may(&Features::write_behind) && may_be_written_behind(open) && !open.settled &&
      policy_.may_allow(features) && (open.on_behalf || features.write_behind_cached))
    live_.mark(open.key, files_.of(open));
}

void NearWrites::requested(TimePoint now, const Open* open) {
  if (open) active(now, *open);
  if (promises_.outstanding_bytes() == 0) live_.moved(now);
}

void NearWrites::room(const Room& room) {
  room_.told(DiskTree{room.session << 16 | room.tree}, room.available_bytes, room.counted_bytes);
}

void NearWrites::marked(const Marked& marked) {
  const Open* open = connection_.open(marked.open);
  if (!open || open->times_settled != marked.settled) return;
  live_.marked_at_twin(marked);
  review_undecided();
}

void NearWrites::review_undecided() {
  if (undecided_.review(promises_, [&](const OpenKey& key) { return live_.is_marked(key); })) answer_held();
}

// As in smb2/near_writes.cc.
void NearWrites::answer_held() {
  if (stops_ || files_.may_be_misnamed() || lost_->live().has_unguarded(ends_)) return;
  while (const auto next = promises_.poll_answerable())
    if (const auto waiting = writes_.find(*next); waiting != writes_.end()) answer_early(waiting->second);
}

std::optional<Promises::Conditions> NearWrites::may_promise(Open& open, const Header& header,
                                                            const WriteRequest& write) {
  const Features& features = local_.surroundings().features;
  if (doomed_ || stops_ || !local_.may(&Features::write_behind) || !may_be_promised(open, header, write) ||
      !policy_.allows(open, features, counters_) ||
      !room_.has_room(disk_tree(open), static_cast<std::uint32_t>(write.data.size())))
    return std::nullopt;
  // Its mark would have the old name at one of the halves.
  if (files_.may_be_misnamed()) return std::nullopt;
  const auto declines = [&](modules::Reason reason) {
    policy_.declines(open, reason, counters_);
    return std::nullopt;
  };
  if (lost_->live().has_unguarded(ends_)) return declines(reasons::smb_other_paths);
  const auto marked = live_.is_marked(open.key);
  if (!marked.value_or(true)) return declines(reasons::smb_not_recorded);
  if (!marked && undecided_.is_full()) return std::nullopt;
  return marked ? Promises::Conditions::fulfilled : Promises::Conditions::open_question;
}

bool NearWrites::promise(const Open& open, const Frame& frame, const Header& header,
                         const WriteRequest& write, Promises::Conditions conditions) {
  const auto length = static_cast<std::uint32_t>(write.data.size());
  const MessageNumber number = next_number();
  const auto verdict = promises_.promise(open.key, number, {write.offset, length}, conditions);
  if (verdict == Promises::Verdict::refused) return false;
  if (conditions == Promises::Conditions::open_question) undecided_.hold(number, open.key);
  room_.promised(disk_tree(open), length);
  const Early early{header, length};
  out_.tell(Promised{open.key, number});
  out_.pass_on(frame.bytes);
  writes_[number] = early;
  if (verdict == Promises::Verdict::now) answer_early(early);
  return true;
}

void NearWrites::answer_early(const Early& early) {
  ++counters_.promises_made;
  counters_.promised_bytes += early.length;
  ++counters_.round_trips_saved;
  connection_.answered_here(number_of(early.header));
  answer_as(out_, early.header, Status::success, early.length);
}

void NearWrites::kept(const Kept& kept) {
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
      lost_->refused(files_.of(*through),
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

// WRITE, FLUSH and all requests that close a file: a program takes their success for that of its writes. A
// FLUSH of an unknown open may apply to all files ([MS-CIFS] 2.2.4.6: FID 0xFFFF).
void NearWrites::passes(const Message& message) {
  const Command command = message.header.command;
  const Open* open = connection_.open_of(message);
  if (open && command == Command::write_andx) settled_.passed_write(*open, number_of(message.header));
  carriers_.erase(number_of(message.header));  // of an earlier request that was never answered
  // A raw transfer has special responses.
  if (!has_answer(message) || is_raw(message) || carriers_.size() >= kMostRemembered) return;
  std::optional<OpenKey> meant;
  if (open && (writes_data(command) || command == Command::flush)) meant = open->key;
  if (const Pending* pending = connection_.pending(number_of(message.header)); pending && !meant)
    for (const std::uint16_t fid : pending->closing)
      if (const Open* closed = connection_.opens().find(fid)) meant = closed->key;
  if (meant || command == Command::flush) carriers_.insert_or_assign(number_of(message.header), meant);
}

std::optional<Slice> NearWrites::with_late_error(TimePoint now, const Frame& frame, const Message& answer,
                                                 const Pending* request) {
  const MessageNumber number = number_of(answer.header);
  const auto carrier = carriers_.find(number);
  if (carrier == carriers_.end() || !request) return frame.bytes;
  const std::optional<OpenKey> of = carrier->second;
  carriers_.erase(carrier);
  auto told = late_error(frame, answer, *request, of);
  if (of) settled_.answered_write(now, *of, number);
  return told;
}

std::optional<Slice> NearWrites::late_error(const Frame& frame, const Message& answer, const Pending& request,
                                            const std::optional<OpenKey>& of) {
  const auto status = static_cast<Status>(answer.header.status);
  std::vector<OpenKey> meant;
  if (of) meant.push_back(*of);
  if (!of)
    for (const auto& [fid, open] : connection_.opens().all()) meant.push_back(open.key);
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

void NearWrites::reset_if_doomed() {
  if (doomed_ && promises_.waiting() == 0) abort(Cause::flow_cut);
}

void NearWrites::over(const Open& open) {
  settled_.closed(open.key);
  const LivePromises::Closed closed = live_.closed(open.key, files_.of(open));
  if (closed == LivePromises::Closed::settled) out_.tell(Settled{open.key});
  if (closed == LivePromises::Closed::lost) abort(Cause::server_gone);
}

void NearWrites::abort(Cause cause) {
  if (aborted_) return;
  aborted_ = true;
  live_.lose(cause);
  out_.abort();
}

void NearWrites::told_late(const OpenKey& key, Told how) {
  ++counters_.late_errors;
  if (const Open* open = connection_.open(key)) lost_->told_late(files_.of(*open), how);
}

std::optional<LostWrites::File> NearWrites::file_of(const OpenKey& key) {
  const Open* open = connection_.open(key);
  return open ? std::optional(files_.of(*open)) : std::nullopt;
}

}  // namespace longhaul::smb::smb1
