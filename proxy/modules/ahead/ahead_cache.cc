// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/ahead/ahead_cache.h"

#include <algorithm>
#include <utility>

namespace longhaul::ahead {
namespace {

std::uint64_t end_of(std::uint64_t offset, const Slice& bytes) { return offset + bytes.size(); }
const Slice& slice_of(const Slice& slice) { return slice; }
template <class Piece>
const Slice& slice_of(const Piece& piece) {
  return piece.bytes;
}

// The first piece that ends behind `offset`; the pieces are disjoint.
template <class Pieces>
auto first_behind(Pieces& pieces, std::uint64_t offset) {
  auto piece = pieces.upper_bound(offset);
  if (piece != pieces.begin()) {
    auto before = std::prev(piece);
    if (end_of(before->first, slice_of(before->second)) > offset) return before;
  }
  return piece;
}

// Calls `visit(offset, slice)` for each part of [offset, offset + bytes) that `pieces` does not hold. `visit`
// must not change them.
template <class Pieces, class Visit>
void for_each_gap(const Pieces& pieces, std::uint64_t offset, const Slice& bytes, Visit&& visit) {
  std::uint64_t at = offset, end = end_of(offset, bytes);
  auto cut = [&](std::uint64_t from, std::uint64_t to) {
    visit(from, bytes.sub(static_cast<std::size_t>(from - offset), static_cast<std::size_t>(to - from)));
  };
  for (auto piece = first_behind(pieces, at); at < end && piece != pieces.end() && piece->first < end;
       ++piece) {
    if (piece->first > at) cut(at, piece->first);
    at = end_of(piece->first, slice_of(piece->second));
  }
  if (at < end) cut(at, end);
}

// The answer to [offset, end), if there is no gap before its end or that of the file.
std::optional<ReadData> gather(const std::map<std::uint64_t, Slice>& pieces, std::uint64_t offset,
                               std::uint64_t end, std::optional<std::uint64_t> end_of_file) {
  if (end_of_file) end = std::min(end, std::max(*end_of_file, offset));
  ReadData data;
  std::uint64_t at = offset;
  for (const auto& [begin, bytes] : pieces) {
    if (at >= end || begin > at) break;
    std::uint64_t until = std::min(end, end_of(begin, bytes));
    data.pieces.push_back(
        bytes.sub(static_cast<std::size_t>(at - begin), static_cast<std::size_t>(until - at)));
    at = until;
  }
  if (at < end) return std::nullopt;
  data.length = static_cast<std::uint32_t>(end - offset);
  return data;
}

}  // namespace

AheadCache::AheadCache(std::shared_ptr<AheadAccount> account, AheadBounds bounds)
    : account_(std::move(account)), bounds_(bounds), allowance_(bounds.flow_bytes) {}

AheadCache::~AheadCache() { account_->held_bytes -= held_bytes_; }

void AheadCache::opened(const OpenKey& open) {
  forget(open);
  opens_.emplace(open, Open{});
}

void AheadCache::forget(const OpenKey& key) {
  auto open = opens_.find(key);
  if (open == opens_.end()) return;
  clear(open->second);
  with_read_.erase(key);
  opens_.erase(open);
}

std::uint32_t AheadCache::drop(const OpenKey& key) {
  auto open = opens_.find(key);
  if (open == opens_.end()) return 0;
  clear(open->second);
  return ++open->second.stamp.near;
}

void AheadCache::far_dropped(const OpenKey& key, std::uint32_t epoch) {
  auto open = opens_.find(key);
  if (open == opens_.end()) return;
  clear(open->second);
  open->second.stamp.far = epoch;
}

std::optional<Stamp> AheadCache::stamp(const OpenKey& key) const {
  auto open = opens_.find(key);
  return open == opens_.end() ? std::nullopt : std::optional(open->second.stamp);
}

std::uint64_t AheadCache::seen(const OpenKey& key) const {
  auto open = opens_.find(key);
  return open == opens_.end() ? 0 : open->second.seen;
}

void AheadCache::pushed(const Ahead& ahead, const Slice& bytes, link::TimePoint now) {
  if (ahead.offset >= kMostOffset) return;  // no file is that large
  if (const auto numbers = waiting_for_.find(ahead.open); numbers != waiting_for_.end()) {
    for (const MessageNumber number : numbers->second) take(number, waiting_.at(number), ahead, bytes);
  }
  for (const Ready& ready : ready_)
    if (const auto waiting = waiting_.find(ready.message); waiting != waiting_.end()) stop_waiting(waiting);

  auto found = opens_.find(ahead.open);
  if (found == opens_.end()) {
    wasted_bytes_ += bytes.size();
    return;
  }
  Open& open = found->second;
  ++open.seen;
  if (ahead.stamp != open.stamp) {
    wasted_bytes_ += bytes.size();
    return;
  }
  if (ahead.end_of_file) {
    if (!open.end_of_file) open.end_came = now;
    open.end_of_file = ahead.end_of_file;
  }
  insert(open, ahead.offset, bytes, now);
  for (const Ready& ready : ready_) {
    if (ready.open != ahead.open) continue;
    for (auto piece = first_behind(open.pieces, ready.offset);
         piece != open.pieces.end() && piece->first < ready.offset + ready.data.length; ++piece)
      if (end_of(piece->first, piece->second.bytes) <= ready.offset + ready.data.length)
        now_read(found->first, open, piece);
  }
}

// For one READ that waits.
void AheadCache::take(MessageNumber number, Waiting& waiting, const Ahead& ahead, const Slice& bytes) {
  if (waiting.forwarded || waiting.stamp != ahead.stamp) return;
  const std::uint64_t begin = std::max(waiting.offset, ahead.offset);
  const std::uint64_t end = std::min(waiting.end, end_of(ahead.offset, bytes));
  if (begin < end) {
    std::vector<std::pair<std::uint64_t, Slice>> gaps;
    const Slice part =
        bytes.sub(static_cast<std::size_t>(begin - ahead.offset), static_cast<std::size_t>(end - begin));
    for_each_gap(waiting.pieces, begin, part,
                 [&](std::uint64_t at, Slice gap) { gaps.emplace_back(at, gap); });
    for (auto& [at, gap] : gaps) {
      waiting.held += gap.size();
      waiting_bytes_ += gap.size();
      const std::uint64_t end_of_it = waiting.end_of_file.value_or(waiting.end);
      if (at < end_of_it) waiting.lacking -= std::min<std::uint64_t>(gap.size(), end_of_it - at);
      waiting.pieces.emplace(at, std::move(gap));
    }
  }
  // Each carries the end of the file, which changes once or twice at most under one stamp.
  constexpr unsigned kMostEnds = 8;
  const bool ends = ahead.end_of_file && ahead.end_of_file != waiting.end_of_file && waiting.ends < kMostEnds;
  if (ends) {
    ++waiting.ends;
    waiting.end_of_file = ahead.end_of_file;
    waiting.lacking = lacking(waiting);
  }
  if (waiting.lacking != 0) return;
  if (auto data = gather(waiting.pieces, waiting.offset, waiting.end, waiting.end_of_file))
    ready_.push_back({number, waiting.open, waiting.offset, std::move(*data)});
}

std::uint64_t AheadCache::lacking(const Waiting& waiting) {
  const std::uint64_t end = waiting.end_of_file
                                ? std::min(waiting.end, std::max(*waiting.end_of_file, waiting.offset))
                                : waiting.end;
  std::uint64_t bytes = end - waiting.offset;
  for (const auto& [begin, piece] : waiting.pieces)
    if (begin < end) bytes -= std::min<std::uint64_t>(piece.size(), end - begin);
  return bytes;
}

void AheadCache::stop_waiting(KeyedMap<MessageNumber, Waiting>::iterator waiting) {
  waiting_bytes_ -= waiting->second.held;
  if (const auto numbers = waiting_for_.find(waiting->second.open); numbers != waiting_for_.end()) {
    numbers->second.erase(waiting->first);
    if (numbers->second.empty()) waiting_for_.erase(numbers);
  }
  waiting_.erase(waiting);
}

void AheadCache::passed(const OpenKey& key, Stamp stamp, std::uint64_t offset, const Slice& bytes,
                        link::TimePoint now) {
  auto found = opens_.find(key);
  if (found == opens_.end() || found->second.stamp != stamp) return;
  Open& open = found->second;
  // Already read: worth keeping, but less than data that was not read yet.
  if (open.held_bytes + bytes.size() > bounds_.open_bytes / 2 || !make_room(open, bytes.size())) return;
  insert(open, offset, bytes, now);
  for (auto piece = first_behind(open.pieces, offset);
       piece != open.pieces.end() && piece->first < end_of(offset, bytes); ++piece)
    now_read(found->first, open, piece);
}

bool AheadCache::has_older(const OpenKey& key, std::uint64_t offset, std::uint32_t length,
                           link::TimePoint time) const {
  const auto found = opens_.find(key);
  if (found == opens_.end()) return false;
  const Open& open = found->second;
  const std::uint64_t end = offset + length;
  if (open.end_of_file && *open.end_of_file < end && open.end_came < time) return true;
  for (auto piece = first_behind(open.pieces, offset); piece != open.pieces.end() && piece->first < end;
       ++piece)
    if (piece->second.came < time) return true;
  return false;
}

std::variant<ReadData, Asked> AheadCache::ask(const OpenKey& key, MessageNumber message, std::uint64_t offset,
                                              std::uint32_t length) {
  if (const auto before = waiting_.find(message); before != waiting_.end()) stop_waiting(before);
  Open& open = opens_.at(key);
  std::uint64_t end = offset + length;
  Waiting waiting{
      .open = key, .stamp = open.stamp, .offset = offset, .end = end, .end_of_file = open.end_of_file};
  if (open.end_of_file) end = std::min(end, std::max(offset, *open.end_of_file));
  Asked asked{.open = key, .stamp = open.stamp, .message = message, .seen = open.seen};
  std::uint64_t at = offset;
  bool missing = false;
  for (auto piece = first_behind(open.pieces, offset); piece != open.pieces.end() && piece->first < end;
       ++piece) {
    std::uint64_t begin = std::max(offset, piece->first);
    std::uint64_t until = std::min(end, end_of(piece->first, piece->second.bytes));
    if (begin > at) {
      if (!missing) asked.missing_from = at;
      missing = true;
      asked.missing_to = begin;
      waiting.lacking += begin - at;
    }
    waiting.held += until - begin;
    waiting.pieces.emplace(begin, piece->second.bytes.sub(static_cast<std::size_t>(begin - piece->first),
                                                          static_cast<std::size_t>(until - begin)));
    at = until;
    if (until == end_of(piece->first, piece->second.bytes)) now_read(key, open, piece);
  }
  if (at < end) {
    if (!missing) asked.missing_from = at;
    missing = true;
    asked.missing_to = end;
    waiting.lacking += end - at;
  }
  if (!missing) return *gather(waiting.pieces, offset, end, std::nullopt);
  waiting_bytes_ += waiting.held;
  waiting_for_[key].insert(message);
  waiting_.insert_or_assign(message, std::move(waiting));
  return asked;
}

std::optional<AheadCache::Ready> AheadCache::poll_ready() {
  if (ready_.empty()) return std::nullopt;
  Ready first = std::move(ready_.front());
  ready_.pop_front();
  return first;
}

void AheadCache::forwarded(MessageNumber message) {
  auto waiting = waiting_.find(message);
  if (waiting == waiting_.end()) return;
  waiting->second.forwarded = true;
  waiting->second.pieces.clear();
  waiting_bytes_ -= std::exchange(waiting->second.held, 0);
}

std::optional<AheadCache::Answered> AheadCache::answered(MessageNumber message) {
  auto waiting = waiting_.find(message);
  if (waiting == waiting_.end()) return std::nullopt;
  Answered answered{waiting->second.open, waiting->second.stamp, waiting->second.offset};
  stop_waiting(waiting);
  return answered;
}

std::optional<std::uint64_t> AheadCache::poll_allowance() {
  if (opens_.empty()) return std::nullopt;
  const std::uint64_t free = account_->most_bytes - std::min(account_->most_bytes, account_->held_bytes);
  const std::uint64_t now = std::min(bounds_.flow_bytes, held_bytes_ + free / 4);
  const std::uint64_t change = now > allowance_ ? now - allowance_ : allowance_ - now;
  if (change == 0 || change < allowance_ / 8) return std::nullopt;
  allowance_ = now;
  return now;
}

void AheadCache::clear(Open& open) {
  for (const auto& [offset, piece] : open.pieces)
    if (!piece.read) wasted_bytes_ += piece.bytes.size();
  open.pieces.clear();
  open.read.clear();
  held_bytes_ -= open.held_bytes;
  account_->held_bytes -= open.held_bytes;
  open.held_bytes = 0;
  open.end_of_file.reset();
}

void AheadCache::release(Open& open, Pieces::iterator piece) {
  std::uint64_t bytes = piece->second.bytes.size();
  if (piece->second.read) open.read.erase(piece->first);
  open.pieces.erase(piece);
  open.held_bytes -= bytes;
  held_bytes_ -= bytes;
  account_->held_bytes -= bytes;
}

void AheadCache::now_read(const OpenKey& key, Open& open, Pieces::iterator piece) {
  if (std::exchange(piece->second.read, true)) return;
  if (open.read.empty()) with_read_.insert(key);
  open.read.insert(piece->first);
}

bool AheadCache::lacks(const Open& open, std::uint64_t bytes) const {
  return open.held_bytes + bytes > bounds_.open_bytes || held_bytes_ + bytes > bounds_.flow_bytes ||
         account_->held_bytes + bytes > account_->most_bytes;
}

void AheadCache::give_up_read(Open& open, const Open& wanting, std::uint64_t bytes) {
  while (lacks(wanting, bytes) && !open.read.empty()) release(open, open.pieces.find(*open.read.begin()));
}

// Data already read goes first, this open's before others'. Unread data is never evicted for newer data: it
// would be fetched twice.
bool AheadCache::make_room(Open& open, std::uint64_t bytes) {
  if (open.pieces.size() >= kMostSmallPieces + open.held_bytes / kUsualPieceBytes) return false;
  give_up_read(open, open, bytes);
  while (lacks(open, bytes) && !with_read_.empty()) {
    const auto other = opens_.find(*with_read_.begin());
    if (other != opens_.end()) give_up_read(other->second, open, bytes);
    if (other == opens_.end() || other->second.read.empty()) with_read_.erase(with_read_.begin());
  }
  return !lacks(open, bytes);
}

void AheadCache::insert(Open& open, std::uint64_t offset, const Slice& bytes, link::TimePoint now) {
  if (bytes.empty()) return;
  if (!make_room(open, bytes.size())) {
    wasted_bytes_ += bytes.size();
    return;
  }
  std::vector<std::pair<std::uint64_t, Slice>> gaps;
  for_each_gap(open.pieces, offset, bytes, [&](std::uint64_t at, Slice gap) { gaps.emplace_back(at, gap); });
  for (auto& [at, gap] : gaps) {
    open.held_bytes += gap.size();
    held_bytes_ += gap.size();
    account_->held_bytes += gap.size();
    open.pieces.emplace(at, Piece{.bytes = std::move(gap), .came = now});
  }
}

}  // namespace longhaul::ahead
