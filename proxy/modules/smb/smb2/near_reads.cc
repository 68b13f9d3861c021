// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/near_reads.h"

#include <algorithm>

namespace longhaul::smb::smb2 {
namespace {

// Limit of READs of one connection that wait for data; further ones are sent to the server.
constexpr std::size_t kMostWaiting = 128;

// A READ that can be answered here: without options that only the server supports.
bool is_plain(const Header& header, const ReadRequest& read, const Connection& connection) {
  constexpr std::uint32_t kKnownFlags = header_flags::priority_mask;
  return (header.flags & ~kKnownFlags) == 0 && header.channel_sequence == 0 && read.flags == 0 &&
         read.channel == 0 && read.length > 0 && read.length <= connection.negotiated().max_read_bytes() &&
         read.offset < AheadCache::kMostOffset - read.length && charge_for(read.length) <= header.charge();
}

}  // namespace

void NearReads::before_request(TimePoint, const Message&, const Changes& changes) {
  for (const Change& change : changes)
    if (change.kind == Change::Kind::voided) drop_file(*change.file);
}

void NearReads::drop_file(const FileGroup& file) {
  for (const OpenKey& open : fresh_.take(file)) drop(open);
}

void NearReads::drop(const OpenKey& open) {
  fresh_.forget(open);
  if (!cache_.knows(open)) return;
  side_.out().tell(Drop{open, cache_.drop(open)});
  count();
}

void NearReads::on_outcome(TimePoint, const Connection::Outcome& outcome) {
  for (const Change& change : outcome.changes) {
    if (change.kind == Change::Kind::opened && change.open->disk_file) {
      cache_.opened(change.open->key);
      if (change.open->caching & lease_state::read)
        fresh_.learnt(*change.open);  // the far half may be reading
    }
    if (change.kind == Change::Kind::closed) {
      cache_.forget(change.open->key);
      fresh_.forget(change.open->key);
    }
    if (change.kind == Change::Kind::broken) drop(*change.open);
  }
  tell_allowance();
  count();
}

Taken NearReads::on_request(TimePoint now, const Message& message, const Changes&) {
  if (!message.single() || message.header().command != Command::read) return Taken::no;
  if (!side_.surroundings().features.read_ahead) return Taken::no;
  const Header& header = message.header();
  auto read = parse_read_request(message.first().bytes);
  if (!read || !is_plain(header, *read, side_.connection())) return Taken::no;
  Open* open = side_.connection().open(key_of(header.session_id, header.tree_id, read->file));
  if (!open || !cache_.knows(open->key) || open->is_locked() || open->closing || open->write_through())
    return Taken::no;

  if (cache_.waiting() >= kMostWaiting) return Taken::no;

  if (side_.surroundings().features.metadata_relaxed &&
      cache_.has_older(open->key, read->offset, read->length, now - kRelaxedDataLife))
    drop_file(*open->group);
  fresh_.learnt(*open);
  Read asked{.header = header, .length = read->length, .minimum_count = read->minimum_count};
  auto found = cache_.ask(open->key, number_of(header.message_id), read->offset, read->length);
  if (auto* data = std::get_if<ReadData>(&found)) {
    answer(now, asked, open->key, read->offset, *data);
    return Taken::yes;
  }
  side_.out().tell(std::get<Asked>(found));
  // The READ also goes to the far half: whichever has the data first answers it.
  waiting_.insert_or_assign(header.message_id, std::move(asked));
  return Taken::no;
}

Taken NearReads::on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) {
  for (const auto& answered : outcome.answered) {
    if (answered.interim || answered.request.command != Command::read) continue;
    waiting_.erase(answered.request.id);
    auto read = cache_.answered(number_of(answered.request.id));
    if (!read || !message.single()) continue;
    Open* open = side_.connection().open(read->open);
    if (!open || open->group->count(&FileCounts::unsettled) != 0 || !(open->caching & lease_state::read) ||
        answered.element->header.status != Status::success)
      continue;
    if (auto response = parse_read_response(answered.element->bytes); response && !response->data.empty()) {
      auto at = static_cast<std::size_t>(response->data.data() - message.frame.bytes.bytes().data());
      cache_.passed(read->open, read->stamp, read->offset, message.frame.bytes.sub(at, response->data.size()),
                    now);
    }
  }
  return Taken::no;
}

Taken NearReads::on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) {
  if (auto* ahead = std::get_if<Ahead>(&message)) {
    if (const Open* open = side_.connection().open(ahead->open)) fresh_.learnt(*open);
    cache_.pushed(*ahead, attached, now);
    side_.counters().ahead_bytes += attached.size();
    while (auto ready = cache_.poll_ready()) {
      auto read = waiting_.extract(id_of(ready->message));
      if (!read.empty()) answer(now, read.mapped(), ready->open, ready->offset, ready->data);
    }
    count();
    return Taken::yes;
  }
  if (auto* held = std::get_if<Held>(&message)) {
    if (const Open* open = side_.connection().open(held->open)) fresh_.learnt(*open);
    return Taken::no;
  }
  if (auto* dropped = std::get_if<Drop>(&message)) {
    cache_.far_dropped(dropped->open, dropped->epoch);
    count();
    return Taken::yes;
  }
  if (auto* forwarded = std::get_if<Forwarded>(&message)) {
    cache_.forwarded(forwarded->message);
    return Taken::yes;
  }
  if (auto* taken_back = std::get_if<Break>(&message))
    if (Open* open = side_.connection().open(taken_back->open)) drop(*open);
  return Taken::no;
}

// 3.3.5.12: less data than MinimumCount, or none at all, means the end of the file.
void NearReads::answer(TimePoint now, const Read& read, const OpenKey& open, std::uint64_t offset,
                       const ReadData& data) {
  MessageId id = read.header.message_id;
  Outputs& out = side_.out();
  out.tell(Used{open, offset, read.length, number_of(id), read.header.charge(), cache_.seen(open)});
  if (const Open* file = side_.connection().open(open))
    side_.has_read(*file, offset, read.length, data.length < read.minimum_count ? 0 : data.length);
  if (data.length == 0 || data.length < read.minimum_count) {
    side_.answer(now, id, build_error_response(answer_to(read.header, Status::end_of_file)),
                 NearSide::Told::yes);
    return;
  }
  Slice head = build_read_response_head(answer_to(read.header, Status::success), data.length);
  side_.answer(now, id, std::move(head), NearSide::Told::yes);
  for (const Slice& piece : data.pieces) out.to_lan(piece);
  side_.counters().ahead_used_bytes += data.length;
}

void NearReads::tell_allowance() {
  if (auto bytes = cache_.poll_allowance()) side_.out().tell(Allowance{*bytes});
}

void NearReads::count() { side_.counters().ahead_wasted_bytes = cache_.wasted_bytes() + other_wasted_bytes_; }

}  // namespace longhaul::smb::smb2
