// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/far_reads.h"

#include <algorithm>

namespace longhaul::smb::smb2 {
namespace {

// Size of pushed pieces: small enough that the near half answers while the rest is still arriving.
constexpr std::size_t kPieceBytes = 64 << 10;
static_assert(kPieceBytes <= kMaxAttachedBytes);
constexpr std::uint32_t kLargestRead = 1 << 20;  // with multi-credit: 16 ids
constexpr std::uint64_t kLeastFirstBytes = 64 << 10, kMostFirstBytes = 4 << 20;
constexpr std::uint64_t kLeastScatteredBytes = 256 << 10, kMostScatteredBytes = 16 << 20;

}  // namespace

FarReads::File* FarReads::find(const OpenKey& open) {
  auto found = files_.find(open);
  return found == files_.end() ? nullptr : &found->second;
}

// ---- what makes data void

// The near half reports every open that it knows, except one whose CREATE answer has not reached it yet.
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
      learn(*file);
      drop(now, *open);
    }
  }
  if (asked_ && header.command == Command::read && header.message_id == asked_->message) {
    sent_on(asked_->open, asked_->message);  // unless it is swallowed
  } else {
    asked_.reset();
  }
}

void FarReads::sent_on(const OpenKey& open, MessageId id) {
  answered(id);
  at_server_[id] = open;
  if (File* file = find(open)) file->at_server.insert(id);
}

// Or it never went there.
void FarReads::answered(MessageId id) {
  const auto read = at_server_.extract(id);
  if (read.empty()) return;
  if (File* file = find(read.mapped())) file->at_server.erase(id);
}

void FarReads::drop(TimePoint now, const Open& open) {
  File* file = find(open.key);
  fresh_.forget(open.key);
  if (!file) return;
  ++file->stamp.far;
  side_.out().tell(Drop{open.key, file->stamp.far});
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

void FarReads::void_fetched(TimePoint now, File& file) {
  file.fetches.give_up();
  file.policy.forget_fetched();
  for (const Message& read : file.owed.take_all()) send_owed(now, file, read);
}

void FarReads::send_owed(TimePoint now, File& file, const Message& message) {
  sent_on(key_of(file.session, file.tree, file.file), message.header().message_id);
  side_.send(now, message);
}

void FarReads::on_outcome(TimePoint now, const Connection::Outcome& outcome) {
  for (const auto& answered : outcome.answered) {
    if (!answered.interim) this->answered(answered.request.id);
  }
  for (const Change& change : outcome.changes) {
    File* file = find(change.open->key);
    if (!file) continue;
    if (change.kind == Change::Kind::broken) {
      if (!(change.open->caching & lease_state::read)) file->usable = false;
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
  auto [entry, fresh] = files_.try_emplace(open.key, ahead_bytes_, owed_);
  if (!fresh) return;
  File& file = entry->second;
  file.file = open.file;
  file.session = open.session;
  file.tree = open.tree;
  file.policy.opened(open.end_of_file, limits());
  fresh_.learnt(open);  // its size, as yet
  fetch_more(now, open.key, file);
  second_handles_.open(now, open);
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
      file->pushes.seen(used->seen);
      file->policy.on_read(used->offset, used->length, limits());
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
      file->stamp.near = dropped->epoch;
      fresh_.forget(dropped->open);
      void_fetched(now, *file);
    }
    return Taken::yes;
  }
  return Taken::no;
}

bool FarReads::answered_by_near(TimePoint now, const Message& message) {
  if (!asked_ || !message.single() || message.header().message_id != asked_->message) return false;
  File* file = find(asked_->open);
  const Pending* request = side_.connection().pending(asked_->message);
  if (!file || !request) return false;
  file->pushes.seen(asked_->seen);
  IntervalSet missing;
  missing.add({asked_->missing_from, asked_->missing_to});
  file->pushes.remove_from(missing, asked_->stamp);
  if (!missing.empty()) return false;
  answered(asked_->message);
  file->policy.on_read(request->offset, request->length, limits());
  fetch_more(now, asked_->open, *file);
  asked_.reset();
  return true;
}

Taken FarReads::on_request(TimePoint now, const Message& message, const Changes&) {
  if (!asked_) return Taken::no;
  Asked asked = *asked_;
  asked_.reset();
  File* file = find(asked.open);
  const Pending* request = side_.connection().pending(asked.message);
  if (!message.single() || message.header().message_id != asked.message || !file || !request)
    return Taken::no;
  read(now, message, asked, *file, *request);
  file->policy.on_read(request->offset, request->length, limits());
  fetch_more(now, asked.open, *file);
  return Taken::yes;
}

// Swallows it if some of its data is being fetched, and has the rest fetched too; otherwise passing it on is
// faster.
void FarReads::read(TimePoint now, const Message& message, const Asked& asked, File& file,
                    const Pending& request) {
  if (!may_fetch(asked.open, file) || asked.stamp != file.stamp || file.owed.size() >= kMostOwed)
    return side_.send(now, message);
  IntervalSet missing;
  missing.add({asked.missing_from, asked.missing_to});
  file.pushes.remove_from(missing, asked.stamp);
  IntervalSet holes = missing;
  file.fetches.remove_from(holes);
  std::uint64_t hole_bytes = 0;
  for (const Interval& hole : holes.intervals()) hole_bytes += hole.size();
  bool swallowed = hole_bytes < asked.missing_to - asked.missing_from;
  for (const Interval& hole : holes.intervals())
    for (Interval part{hole.begin, hole.begin}; swallowed && part.begin < hole.end; part.begin = part.end) {
      part.end = std::min(hole.end, part.begin + largest_read());
      swallowed = fetch(now, asked.open, file, part);
    }
  if (!swallowed) {
    file.policy.missed(request.offset, request.length);
    return side_.send(now, message);
  }
  answered(asked.message);
  file.owed.add(kept(message), std::move(missing));
}

// ---- fetching

bool FarReads::may_fetch(const OpenKey& key, const File& file) {
  if (!file.usable || ended_ || side_.connection().negotiated().max_read_bytes() < kLeastRead) return false;
  if (!side_.surroundings().features.read_ahead || side_.connection().sessions().untouchable(file.session))
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
  ReadAheadLimits limits = limits_for(line.line_bytes_per_second, line.round_trip, largest_read());
  limits.first_bytes = std::min(limits.first_bytes, most_first_bytes_);
  limits.scattered_bytes = std::min(limits.scattered_bytes, most_scattered_bytes_);
  return limits;
}

// A file is closed: was it read as far as it was fetched with its open, and entirely if it was fetched
// entirely?
void FarReads::learn(const File& file) {
  bool in_vain = file.pushes.told() > 0 && file.policy.ahead_bytes() >= kLeastFirstBytes;
  most_first_bytes_ = in_vain ? std::max(most_first_bytes_ / 2, kLeastFirstBytes)
                              : std::min(most_first_bytes_ * 2, kMostFirstBytes);
  if (!file.policy.scattered()) return;
  const std::uint64_t size = file.policy.end_of_file().value_or(0);
  most_scattered_bytes_ = file.policy.ahead_bytes() > size / 2
                              ? std::max(most_scattered_bytes_ / 4, kLeastScatteredBytes)
                              : std::min(most_scattered_bytes_ * 4, kMostScatteredBytes);
}

void FarReads::fetch_more(TimePoint now, const OpenKey& key, File& file) {
  if (file.usable && !ended_) wanting_.insert(key);
  if (!may_fetch(key, file) || starved_ || file.pushes.size() >= kMostInFlight) return;
  ReadAheadLimits limits = this->limits();
  // Data without room there would have to cross again, and so would the data behind it.
  for (const std::uint32_t worth = std::min(limits.largest_read, kCreditBytes);
       ahead_bytes_ + worth <= most_ahead_bytes_ && file.fetches.size() < kMostFetches;) {
    const std::uint64_t room = most_ahead_bytes_ - ahead_bytes_;
    limits.largest_read =
        std::max(worth, static_cast<std::uint32_t>(std::min<std::uint64_t>(limits.largest_read, room)));
    // As the free ids allow: some smaller READs rather than none.
    while (limits.largest_read > kCreditBytes && !side_.can_inject(charge_for(limits.largest_read)))
      limits.largest_read = std::max(limits.largest_read / 4, kCreditBytes);
    starved_ = starved_ || !side_.can_inject(charge_for(limits.largest_read));
    if (starved_) return;
    auto range = file.policy.next(limits);
    if (!range) {
      wanting_.erase(key);
      return;
    }
    if (!fetch(now, key, file, *range)) return;
  }
}

// A few of those that want more; the next few at the next call.
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
  if (!open || file.fetches.size() >= kMostFetches) return false;
  if (!side_.surroundings().features.metadata_relaxed) (void)side_.watch(now, *open);
  std::uint64_t number = ++numbers_;
  auto length = static_cast<std::uint32_t>(range.size());
  auto build = [&](const RequestHead& head) {
    ReadRequest read;
    read.length = length;
    read.offset = range.begin;
    read.file = file.file;
    return build_read_request(widening(head), read);
  };
  auto reply = [this, key, number](TimePoint then, const Frame& frame, const Element& answer) {
    fetched(then, key, number, frame, answer);
  };
  const bool sent = open->may_be_replayed
                        ? second_handles_.read(now, key, range, charge_for(length), reply)
                        : side_.inject(now, file.session, file.tree, charge_for(length), build, reply);
  if (!sent) return false;
  file.fetches.begin(number, range);
  fresh_.learnt(*open);
  return true;
}

void FarReads::fetched(TimePoint now, const OpenKey& key, std::uint64_t number, const Frame& frame,
                       const Element& answer) {
  File* file = find(key);
  if (!file) return;
  const auto fetch = file->fetches.take(number);
  if (!fetch) return;  // dropped meanwhile
  const Interval range = *fetch;
  bool complete = false;

  Result<ReadResponse> response = parse_read_response(answer.bytes);
  if (answer.header.status == Status::success && response && response->data.size() <= range.size()) {
    std::uint64_t end = range.begin + response->data.size();
    // 3.3.5.12: a READ comes short at the end of the file only.
    complete = end == range.end;
    if (!complete) file->policy.on_end_of_file(end);
    auto at = static_cast<std::size_t>(response->data.data() - frame.bytes.bytes().data());
    Slice data = response->data.empty() ? Slice{} : frame.bytes.sub(at, response->data.size());
    push(key, *file, range.begin, data);
  } else if (answer.header.status == Status::end_of_file) {
    // It ends here or before: good for not fetching there, no answer to a READ.
    std::uint64_t end = file->policy.end_of_file().value_or(~0ull);
    if (end > range.begin) file->usable = false;  // it is shorter than it was when it was opened
  } else {
    file->usable = false;  // a lock, or missing rights: the client must get the error itself
  }
  // What waits for a part that came is waiting for the others still.
  if (!complete) settle_owed(now, *file);
  fetch_more(now, key, *file);
}

// Those that nothing comes for any more are sent.
void FarReads::settle_owed(TimePoint now, File& file) {
  const auto lost = file.owed.take_if([&](IntervalSet missing) {
    file.fetches.remove_from(missing);
    return !missing.empty() || !file.usable;
  });
  for (const Message& read : lost) send_owed(now, file, read);
}

void FarReads::push(const OpenKey& key, File& file, std::uint64_t offset, const Slice& bytes) {
  tell_forwarded(file);
  std::size_t done = 0;
  do {
    std::size_t piece = std::min(kPieceBytes, bytes.size() - done);
    Interval range{offset + done, offset + done + piece};
    Ahead ahead{.open = key, .stamp = file.stamp, .offset = range.begin};
    ahead.length = static_cast<std::uint32_t>(piece);
    ahead.end_of_file = file.policy.end_of_file();
    side_.out().tell(ahead, piece == 0 ? Slice{} : bytes.sub(done, piece));
    file.pushes.add(range, file.stamp, ahead.end_of_file);
    done += piece;
  } while (done < bytes.size());
  file.owed.pushed({offset, offset + bytes.size()}, file.policy.end_of_file());
}

// Data pushed from here on must not complete a READ that the server answers: it would be answered twice.
void FarReads::tell_forwarded(File& file) {
  for (const MessageId id : std::exchange(file.at_server, {})) side_.out().tell(Forwarded{id});
}

void FarReads::on_surroundings(TimePoint now, const Surroundings&) { fetch_for_all(now); }

void FarReads::on_ids_freed(TimePoint now) {
  second_handles_.close_unsent(now);
  if (!starved_) return;
  starved_ = false;
  fetch_for_all(now);
}

}  // namespace longhaul::smb::smb2
