// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/ahead/ahead_cache.h"

#include <algorithm>
#include <utility>

namespace longhaul::ahead {
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
  if (ahead.offset >= kMostOffset) return;
  waiting_.pushed(ahead, bytes);

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
    open.end_of_file = std::min(*ahead.end_of_file, open.end_of_file.value_or(~0ull));
  }
  insert(open, ahead.offset, bytes, now);
  for (const Ready& ready : waiting_.ready()) {
    if (ready.open != ahead.open) continue;
    for (auto piece = first_behind(open.pieces, ready.offset);
         piece != open.pieces.end() && piece->first < ready.offset + ready.data.length; ++piece)
      if (end_of(piece->first, piece->second.bytes) <= ready.offset + ready.data.length)
        now_read(found->first, open, piece);
  }
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
  (void)waiting_.answered(message);  // a reused number
  Open& open = opens_.at(key);
  std::uint64_t end = offset + length;
  WaitingReads::Read waiting{
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
    }
    waiting.pieces.emplace(begin, piece->second.bytes.sub(static_cast<std::size_t>(begin - piece->first),
                                                          static_cast<std::size_t>(until - begin)));
    at = until;
    if (until == end_of(piece->first, piece->second.bytes)) now_read(key, open, piece);
  }
  if (at < end) {
    if (!missing) asked.missing_from = at;
    missing = true;
    asked.missing_to = end;
  }
  if (!missing) return *gather(waiting.pieces, offset, end, std::nullopt);
  waiting_.add(message, std::move(waiting));
  return asked;
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

// Data already read is evicted first, this open's before others'. Unread data is never evicted for newer
// data: it would be fetched twice.
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
