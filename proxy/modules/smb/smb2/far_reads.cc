// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/far_reads.h"

#include <algorithm>

namespace longhaul::smb::smb2 {
namespace {

constexpr std::uint32_t kLargestRead = 1 << 20;  // with multi-credit: 16 ids

}  // namespace

FarReads::File* FarReads::find(const OpenKey& open) {
  auto found = files_.find(open);
  return found == files_.end() ? nullptr : &found->second;
}

// ---- invalidation

// The near half reports every open that it knows, except one whose CREATE response has not reached it yet.
void FarReads::before_request(TimePoint now, const Message& message, const Changes& changes) {
  if (side_.connection().sessions().any_untouchable()) second_handles_.close_unsent(now);
  for (const Change& change : changes) {
    if (change.kind != Change::Kind::voided) continue;
    for (const OpenKey& key : fresh_.take(*change.file))
      if (const Open* open = side_.connection().open(key)) drop(now, *open);
  }
  const Header& header = message.header();
  if (header.command == Command::close && message.single()) {
    const Pending* close = side_.connection().pending(header.message_id);
    Open* open = close ? side_.connection().open(close->file) : nullptr;
    if (File* file = open ? find(open->key) : nullptr) {
      learnt_.closed(file->closed());
      drop(now, *open);
    }
  }
  if (asked_ && header.command == Command::read && header.message_id == id_of(asked_->message)) {
    sent_on(asked_->open, id_of(asked_->message));  // unless it is swallowed
  } else {
    asked_.reset();
  }
}

void FarReads::sent_on(const OpenKey& open, MessageId id) {
  answered(id);
  at_server_[id] = open;
  if (File* file = find(open)) file->sent_on(id);
}

// Or it was never sent there.
void FarReads::answered(MessageId id) {
  const auto read = at_server_.extract(id);
  if (read.empty()) return;
  if (File* file = find(read.mapped())) file->answered_by_server(id);
}

void FarReads::drop(TimePoint now, const Open& open) {
  File* file = find(open.key);
  fresh_.forget(open.key);
  if (!file) return;
  side_.out().tell(file->drop());
  void_fetched(now, *file);
}

// Nothing was fetched before, or fetching is no longer allowed.
void FarReads::on_watched(TimePoint now, const Open& open) {
  File* file = find(open.key);
  if (!file) return;
  if (open.watched) {
    fetch_more(now, open.key, *file);
  } else if (!is_guarded(open, side_.surroundings().features)) {
    drop(now, open);
  }
}

void FarReads::void_fetched(TimePoint now, File& file) { send_after_all(now, file, file.void_fetched()); }

void FarReads::send_after_all(TimePoint now, const File& file, const std::vector<Message>& reads) {
  for (const Message& read : reads) {
    sent_on(file.key(), read.header().message_id);
    side_.send(now, read);
  }
}

void FarReads::on_outcome(TimePoint now, const Connection::Outcome& outcome) {
  for (const auto& answered : outcome.answered) {
    if (!answered.interim) this->answered(answered.request.id);
  }
  for (const Change& change : outcome.changes) {
    File* file = find(change.open->key);
    if (!file) continue;
    if (change.kind == Change::Kind::broken) {
      if (!(change.open->caching & lease_state::read)) file->make_unusable();
      drop(now, *change.open);
    } else if (change.kind == Change::Kind::closed) {
      void_fetched(now, *file);
      fresh_.forget(change.open->key);
      wanting_.erase(change.open->key);
      files_.erase(change.open->key);
    }
  }
}

// ---- opens

void FarReads::after_response(TimePoint now, const Connection::Outcome& outcome) {
  for (const Change& change : outcome.changes) {
    if (change.kind != Change::Kind::opened) continue;
    for (const auto& answered : outcome.answered)
      if (answered.request.id == change.by && !answered.request.closed_in_compound) begin(now, *change.open);
  }
  // Requests that changed a file may have been answered: data that waited for that may be fetched.
  for (const auto& answered : outcome.answered) {
    if (answered.interim || answered.request.command == Command::read) continue;
    Open* open = side_.connection().open(answered.request.file);
    if (File* file = open ? find(open->key) : nullptr) fetch_more(now, open->key, *file);
  }
}

void FarReads::begin(TimePoint now, const Open& open) {
  if (!side_.surroundings().features.read_ahead) return;
  if (!open.disk_file || !open.may_read() || open.write_through() || open.is_locked()) return;
  if (!(open.caching & lease_state::read) || open.break_pending || open.reconnected || open.replayed) return;
  if (files_.size() >= kMostFiles) return;
  auto [entry, is_new] = files_.try_emplace(open.key, open, limits(), sums_);
  if (!is_new) return;
  fresh_.learnt(open);  // so far only its size
  fetch_more(now, open.key, entry->second);
  second_handles_.open(open);
}

void FarReads::read_through_second(TimePoint now, const OpenKey& open) {
  if (File* file = find(open)) fetch_more(now, open, *file);
}

// ---- the client's READs

Taken FarReads::on_twin(TimePoint now, const TwinMessage& message, const Slice&) {
  if (auto* asked = std::get_if<Asked>(&message)) {
    asked_ = *asked;
    return Taken::yes;
  }
  if (auto* used = std::get_if<Used>(&message)) {
    if (File* file = find(used->open)) {
      file->near_has_seen(used->seen);
      file->on_read(used->offset, used->length, limits());
      fetch_more(now, used->open, *file);
    }
    return Taken::yes;
  }
  if (auto* allowance = std::get_if<Allowance>(&message)) {
    most_ahead_bytes_ = allowance->bytes;
    fetch_for_all(now);
    return Taken::yes;
  }
  if (auto* dropped = std::get_if<Drop>(&message)) {
    if (File* file = find(dropped->open)) {
      file->near_dropped(dropped->epoch);
      fresh_.forget(dropped->open);
      void_fetched(now, *file);
    }
    return Taken::yes;
  }
  return Taken::no;
}

bool FarReads::answered_by_near(TimePoint now, const Message& message) {
  if (!asked_ || !message.single() || message.header().message_id != id_of(asked_->message)) return false;
  File* file = find(asked_->open);
  const Pending* request = side_.connection().pending(id_of(asked_->message));
  if (!file || !request) return false;
  file->near_has_seen(asked_->seen);
  if (!file->missing_of(*asked_).empty()) return false;
  answered(id_of(asked_->message));
  file->on_read(request->offset, request->length, limits());
  fetch_more(now, asked_->open, *file);
  asked_.reset();
  return true;
}

Taken FarReads::on_request(TimePoint now, const Message& message, const Changes&) {
  if (!asked_) return Taken::no;
  Asked asked = *asked_;
  asked_.reset();
  File* file = find(asked.open);
  const Pending* request = side_.connection().pending(id_of(asked.message));
  if (!message.single() || message.header().message_id != id_of(asked.message) || !file || !request)
    return Taken::no;
  read(now, message, asked, *file, *request);
  file->on_read(request->offset, request->length, limits());
  fetch_more(now, asked.open, *file);
  return Taken::yes;
}

// Swallows it if some of its data is being fetched, and has the rest fetched too; otherwise passing it on is
// faster.
void FarReads::read(TimePoint now, const Message& message, const Asked& asked, File& file,
                    const Pending& request) {
  if (!may_fetch(asked.open, file) || !file.may_swallow(asked.stamp)) return side_.send(now, message);
  IntervalSet missing = file.missing_of(asked);
  const IntervalSet holes = file.holes_in(missing);
  std::uint64_t hole_bytes = 0;
  for (const Interval& hole : holes.intervals()) hole_bytes += hole.size();
  bool swallowed = hole_bytes < asked.missing_to - asked.missing_from;
  for (const Interval& hole : holes.intervals())
    for (Interval part{hole.begin, hole.begin}; swallowed && part.begin < hole.end; part.begin = part.end) {
      part.end = std::min(hole.end, part.begin + largest_read());
      swallowed = fetch(now, asked.open, file, part);
    }
  if (!swallowed) {
    file.missed(request.offset, request.length);
    return side_.send(now, message);
  }
  answered(id_of(asked.message));
  file.swallow(message, std::move(missing));
}

// ---- fetching

bool FarReads::may_fetch(const OpenKey& key, const File& file) {
  if (!file.is_usable() || ended_ || side_.connection().negotiated().max_read_bytes() < kLeastRead) return false;
  if (!side_.surroundings().features.read_ahead || side_.connection().sessions().untouchable(key.session))
    return false;
  const Open* open = side_.connection().open(key);
  if (!open || !is_guarded(*open, side_.surroundings().features)) return false;
  return open->group->count(&FileCounts::unsettled) == 0 && !open->is_locked() && !open->closing &&
         (!open->may_be_replayed || second_handles_.usable(key)) && (open->caching & lease_state::read);
}

std::uint32_t FarReads::largest_read() const {
  const Connection& connection = side_.connection();
  std::uint32_t most = connection.negotiated().multi_credit() ? kLargestRead : kCreditBytes;
  return std::max<std::uint32_t>(1, std::min(most, connection.negotiated().max_read_bytes()));
}

ReadAheadLimits FarReads::limits() const {
  const Surroundings& line = side_.surroundings();
  return learnt_.reduced(limits_for(line.line_bytes_per_second, line.round_trip, largest_read()));
}

void FarReads::fetch_more(TimePoint now, const OpenKey& key, File& file) {
  if (file.is_usable() && !ended_) wanting_.insert(key);
  if (!may_fetch(key, file) || starved_ || !file.may_push()) return;
  ReadAheadLimits limits = this->limits();
  // Data that the near half cannot store would have to be sent again, and so would the data after it.
  for (const std::uint32_t worth = std::min(limits.largest_read, kCreditBytes);
       sums_.ahead_bytes + worth <= most_ahead_bytes_ && file.may_fetch();) {
    const std::uint64_t room = most_ahead_bytes_ - sums_.ahead_bytes;
    limits.largest_read =
        std::max(worth, static_cast<std::uint32_t>(std::min<std::uint64_t>(limits.largest_read, room)));
    // As the free ids allow: some smaller READs rather than none.
    while (limits.largest_read > kCreditBytes && !side_.server().can_inject(charge_for(limits.largest_read)))
      limits.largest_read = std::max(limits.largest_read / 4, kCreditBytes);
    starved_ = starved_ || !side_.server().can_inject(charge_for(limits.largest_read));
    if (starved_) return;
    auto range = file.next(limits);
    if (!range) {
      wanting_.erase(key);
      return;
    }
    if (!fetch(now, key, file, *range)) return;
  }
}

// Serves a few of the files that want more; the next few at the next call.
void FarReads::fetch_for_all(TimePoint now) {
  for (std::size_t n = std::min(wanting_.size(), kMostAtOnce); n > 0 && !wanting_.empty() && !starved_; --n) {
    auto next = wanting_.upper_bound(looked_at_);
    if (next == wanting_.end()) next = wanting_.begin();
    looked_at_ = *next;
    wanting_.erase(next);
    if (File* file = find(looked_at_)) fetch_more(now, looked_at_, *file);
  }
}

bool FarReads::fetch(TimePoint now, const OpenKey& key, File& file, Interval range) {
  Open* open = side_.connection().open(key);
  if (!open || !file.may_fetch()) return false;
  if (!side_.surroundings().features.metadata_relaxed) (void)side_.watch(now, *open);
  std::uint64_t number = ++numbers_;
  auto length = static_cast<std::uint32_t>(range.size());
  auto build = [&](const RequestHead& head) {
    ReadRequest read;
    read.length = length;
    read.offset = range.begin;
    read.file = open->file;
    return build_read_request(widening(head), read);
  };
  auto reply = [this, key, number](TimePoint then, const Frame& frame, const Element& answer) {
    fetched(then, key, number, frame, answer);
  };
  const bool sent = open->may_be_replayed
                        ? second_handles_.read(key, range, charge_for(length), reply)
                        : side_.server().inject(key.session, key.tree, charge_for(length), build, reply);
  if (!sent) return false;
  file.fetch(number, range);
  fresh_.learnt(*open);
  return true;
}

void FarReads::fetched(TimePoint now, const OpenKey& key, std::uint64_t number, const Frame& frame,
                       const Element& answer) {
  File* file = find(key);
  if (!file) return;
  const auto came = file->fetched(number, frame, answer, side_.out());
  if (came == File::Came::unexpected) return;
  // READs that wait for a part that has arrived still wait for the others.
  if (came == File::Came::in_part) send_after_all(now, *file, file->take_stranded());
  fetch_more(now, key, *file);
}

void FarReads::on_surroundings(TimePoint now, const Surroundings&) { fetch_for_all(now); }

void FarReads::on_ids_freed(TimePoint now) {
  second_handles_.close_unsent(now);
  if (!starved_) return;
  starved_ = false;
  fetch_for_all(now);
}

}  // namespace longhaul::smb::smb2
