// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/near_reads.h"

#include <algorithm>

#include "proxy/modules/smb/smb1/builders.h"
#include "proxy/modules/smb/smb1/fields.h"

namespace longhaul::smb::smb1 {

void NearReads::opened(const OpenKey& open) {
  cache_.opened(open);
  tell_allowance();
}

void NearReads::forget(const OpenKey& open) {
  cache_.forget(open);
  void_.erase(open);
}

bool NearReads::request(TimePoint now, const Frame& frame, const Header& header, const ReadRequest& read,
                        const Open& open) {
  void_.erase(open.key);  // the far half may fetch again from here on
  if (!local_.may(&Features::read_ahead) || !open.may_read || !open.may_cache_reads() ||
      !cache_.knows(open.key) || read.length == 0 ||
      read.length > connection_.negotiated().max_read_bytes() ||
      read.offset > AheadCache::kMostOffset - read.length || promises_.waiting(open.key) != 0 ||
      reads_.size() >= kMostReads)
    return false;
  if (local_.may(&Features::metadata_relaxed) &&
      cache_.has_older(open.key, read.offset, read.length, now - kRelaxedDataLife)) {
    drop(open);
    void_.erase(open.key);
  }
  const MessageNumber number = ++asked_for_;
  auto found = cache_.ask(open.key, number, read.offset, read.length);
  if (const auto* data = std::get_if<ReadData>(&found)) {
    connection_.answered_here(number_of(header));
    out_.tell(Used{.open = open.key,
                   .offset = read.offset,
                   .length = data->length,
                   .message = number,
                   .seen = cache_.seen(open.key)});
    answer(header, *data);
    return true;
  }
  reads_.insert_or_assign(number, header);
  out_.tell(std::get<Asked>(found));
  out_.pass_on(frame.bytes);
  return true;
}

void NearReads::answer(const Header& header, const ReadData& data) {
  ++counters_.round_trips_saved;
  counters_.ahead_used_bytes += data.length;
  out_.to_lan(read_reply(header, data.pieces));
}

void NearReads::pushed(TimePoint now, const Ahead& ahead, const Slice& attached) {
  counters_.ahead_bytes += ahead.length;
  cache_.pushed(ahead, attached, now);
  while (auto ready = cache_.poll_ready()) {
    const auto waiting = reads_.find(ready->message);
    if (waiting == reads_.end()) continue;
    const Header header = waiting->second;
    reads_.erase(waiting);
    connection_.answered_here(number_of(header));
    answer(header, ready->data);
  }
  counters_.ahead_wasted_bytes = cache_.wasted_bytes();
}

void NearReads::read_through(const Answer& answer, const Slice& data) {
  if (answer.command != static_cast<std::uint16_t>(Command::read_andx) || answer.request.size() != 8) return;
  const MessageNumber number{u64_at(answer.request.bytes(), 0)};
  cache_.answered(number);
  const auto waiting = reads_.find(number);
  if (waiting == reads_.end()) return;
  const Header header = waiting->second;
  reads_.erase(waiting);
  connection_.answered_here(number_of(header));
  out_.to_lan(answer.status == 0 ? read_reply(header, {data}) : empty_reply(header, answer.status));
}

void NearReads::drop(const Open& open) {
  if (!cache_.knows(open.key) || !void_.insert(open.key).second) return;
  out_.tell(Drop{open.key, cache_.drop(open.key)});
}

bool NearReads::waits_in(std::uint16_t uid, std::uint16_t tid) const {
  return std::any_of(reads_.begin(), reads_.end(),
                     [&](const auto& each) { return each.second.uid == uid && each.second.tid == tid; });
}

void NearReads::tell_allowance() {
  if (auto bytes = cache_.poll_allowance()) out_.tell(Allowance{*bytes});
}

}  // namespace longhaul::smb::smb1
