// SPDX-License-Identifier: Apache-2.0
// The near half's READs: answered from what is ahead, or by the far half or the server.
#include "proxy/modules/smb/smb1/fields.h"
#include "proxy/modules/smb/smb1/near.h"

namespace longhaul::smb::smb1 {

bool Near::read(TimePoint now, const Frame& frame, const Message& message) {
  const auto read = parse_read_request(message.first());
  if (!read) return false;
  const Open* open = connection_.open(key_of(message.header.uid, message.header.tid, read->fid));
  if (!open) return false;
  void_.erase(open->key);  // the far half may fetch again from here on
  // A snapshot may be older than the data of this READ: in the end of the file, for one.
  if (!open->may_cache_writes()) questions_.drop_same_file(*open);
  if (!features(&Features::read_ahead) || !open->may_read || !open->may_cache_reads() ||
      !cache_.knows(open->key) || read->length == 0 || read->length > connection_.max_read_bytes() ||
      read->offset > (1ull << 62) || promises_.waiting(open->key) != 0 || reads_.size() >= kMostReads)
    return false;
  if (features(&Features::metadata_relaxed) &&
      cache_.has_older(open->key, read->offset, read->length, now - kRelaxedDataLife)) {
    drop(*open);
    void_.erase(open->key);
  }
  const MessageNumber number = ++asked_for_;
  auto found = cache_.ask(open->key, number, read->offset, read->length);
  if (const auto* data = std::get_if<ReadData>(&found)) {
    connection_.answered_here(number_of(message.header));
    out_.tell(Used{.open = open->key,
                   .offset = read->offset,
                   .length = data->length,
                   .message = number,
                   .seen = cache_.seen(open->key)});
    answer_read(message.header, *data);
    return true;
  }
  reads_.insert_or_assign(number, message.header);
  out_.tell(std::get<Asked>(found));
  out_.pass_on(frame.bytes);
  return true;
}

void Near::answer_read(const Header& header, const ReadData& data) {
  ++counters_.round_trips_saved;
  counters_.ahead_used_bytes += data.length;
  out_.to_lan(read_reply(header, data.pieces));
}

// The server's own answer to a READ, unless pushed data has answered it.
void Near::read_through(const Answer& answer, const Slice& data) {
  if (answer.command != static_cast<std::uint16_t>(Command::read_andx) || answer.request.size() != 8) return;
  const MessageNumber number = u64_at(answer.request.bytes(), 0);
  cache_.answered(number);
  const auto waiting = reads_.find(number);
  if (waiting == reads_.end()) return;
  const Header header = waiting->second;
  reads_.erase(waiting);
  connection_.answered_here(number_of(header));
  out_.to_lan(answer.status == 0 ? read_reply(header, {data}) : empty_reply(header, answer.status));
}

}  // namespace longhaul::smb::smb1
