// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/shared_history.h"

#include <cassert>

#include "codecs/work.h"

namespace longhaul::reduction {
namespace {

// Holes in the twin's history cost memory and time; beyond this many the older half is forgotten.
constexpr std::size_t kMaxRangesOfPeer = 16'384;

Interval common(Interval a, Interval b) {
  a.begin = std::max(a.begin, b.begin);
  a.end = std::max(a.begin, std::min(a.end, b.end));
  return a;
}

// The range of a sorted set that holds `position`; empty if none.
Interval range_of(const std::vector<Interval>& ranges, std::uint64_t position) {
  auto after = std::upper_bound(ranges.begin(), ranges.end(), position,
                                [](std::uint64_t p, const Interval& i) { return p < i.begin; });
  if (after == ranges.begin() || std::prev(after)->end <= position) return {};
  return *std::prev(after);
}

}  // namespace

SharedHistory::SharedHistory(std::size_t ring_bytes, std::uint64_t start)
    : ring_bytes_(ring_bytes), start_(start), head_(start), floor_(start) {}

std::uint64_t SharedHistory::low(std::uint64_t offset) const {
  std::uint64_t reach = ring_bytes_ - horizon();
  return std::max(floor_, offset > reach ? offset - reach : 0);
}

std::uint64_t SharedHistory::oldest_unanswered() const {
  std::uint64_t index = oldest_ - first_number_;
  return index < blocks_.size() ? blocks_[index].offset : head_;
}

std::size_t SharedHistory::index_of(std::uint64_t offset) const {
  auto found = std::upper_bound(blocks_.begin(), blocks_.end(), offset,
                                [](std::uint64_t o, const Block& b) { return o < b.end(); });
  return static_cast<std::size_t>(found - blocks_.begin());
}

bool SharedHistory::admits(std::uint64_t offset, std::uint64_t size) {
  assert(offset >= head_ && size > 0);
  if (blocks_.size() < kMaxBlocks && offset + size - std::min(oldest_unanswered(), offset) <= horizon()) {
    stalled_bytes_ = 0;
    return true;
  }
  stalled_bytes_ += size;
  if (stalled_bytes_ > horizon()) give_up_on_the_oldest();
  return false;
}

// A stream whose bytes the twin discards has not ended, but will never be answered.
void SharedHistory::give_up_on_the_oldest() {
  stalled_bytes_ = 0;
  std::size_t half = blocks_.size() / 2;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (i > half && blocks_[i].offset + horizon() / 2 > head_) break;
    if (blocks_[i].state == State::unanswered) blocks_[i].state = State::abandoned;
  }
  settle();
}

void SharedHistory::add(std::uint64_t stream, StreamTrack& track, std::uint64_t offset, std::uint64_t size,
                        For whom) {
  assert(offset >= head_);
  std::uint64_t number = first_number_ + blocks_.size();
  blocks_.push_back({offset, stream, track.last, static_cast<std::uint32_t>(size), State::unanswered, whom});
  head_ = offset + size;
  track.last = number + 1;
  if (track.run.end == offset) {
    track.run.end = head_;
  } else {
    track.run = {offset, head_};
  }
  settle();
}

void SharedHistory::on_held(Interval range) {
  std::size_t i = index_of(range.begin);
  const std::size_t first = i;
  for (; i < blocks_.size() && blocks_[i].end() <= range.end; ++i) {
    Block& block = blocks_[i];
    if (block.offset < range.begin) continue;
    if (block.state == State::held) {
      ++answered_again_;
      continue;
    }
    block.state = State::held;
    answered_bytes_ += block.size;
    if (block.offset >= floor_ && block.whom == For::all) held_.add({block.offset, block.end()});
    // Later ranges move, if the twin leaves gaps.
    count_work(held_.intervals().size() / 4);
  }
  count_work(i - first);
  settle();
  const auto& ranges = held_.intervals();
  if (ranges.size() > kMaxRangesOfPeer) held_.remove({0, ranges[ranges.size() / 2].begin});
}

// From its last block to the one before, and no further than blocks may be unanswered: a stream pays for its
// own blocks and not for those of others between them.
void SharedHistory::abandon(const StreamTrack& track) {
  const std::uint64_t oldest = std::max(first_number_, oldest_);
  for (std::uint64_t last = track.last; last > oldest && last - 1 - first_number_ < blocks_.size();) {
    Block& block = blocks_[last - 1 - first_number_];
    if (block.state == State::unanswered) block.state = State::abandoned;
    last = block.before;
  }
  settle();
}

void SharedHistory::give_up(Interval range) {
  for (std::size_t i = index_of(range.begin); i < blocks_.size() && blocks_[i].end() <= range.end; ++i)
    if (blocks_[i].offset >= range.begin && blocks_[i].state == State::unanswered)
      blocks_[i].state = State::abandoned;
  settle();
}

bool SharedHistory::held(Interval range) const {
  Interval around = range_of(held_.intervals(), range.begin);
  return around.begin <= range.begin && range.end <= around.end;
}

bool SharedHistory::given_up(std::uint64_t offset) const {
  const std::size_t at = index_of(offset);
  const bool known = at < blocks_.size() && blocks_[at].offset <= offset;
  if (known && blocks_[at].state == State::unanswered) return false;
  return !held({offset, offset + 1});
}

void SharedHistory::start_over() {
  floor_ = head_;
  held_.remove({0, floor_});
}

// Forgets blocks that are answered or no longer matter, and ranges that have left the ring.
void SharedHistory::settle() {
  while (oldest_ - first_number_ < blocks_.size() &&
         blocks_[oldest_ - first_number_].state != State::unanswered)
    ++oldest_;
  // An abandoned block may still be answered: the stream ended in order, and its last answer is under way.
  while (first_number_ < oldest_ &&
         (blocks_.front().state == State::held || blocks_.front().offset + horizon() < head_ ||
          blocks_.size() == kMaxBlocks)) {
    blocks_.pop_front();
    ++first_number_;
  }
  if (head_ > ring_bytes_ && !held_.empty() && held_.intervals().front().end + ring_bytes_ <= head_)
    held_.remove({0, head_ - ring_bytes_});
}

Interval SharedHistory::Reach::clip(Interval range, std::uint64_t position) const {
  // Contiguous in memory: not across the ring's wrap.
  std::uint64_t lap = position / history_.ring_bytes_ * history_.ring_bytes_;
  return common(range, {std::max(low_, lap), lap + history_.ring_bytes_});
}

Interval SharedHistory::Reach::find(std::uint64_t position) const {
  if (position < low_ || position >= history_.head_) return {};
  Interval found;
  if (whom_ == For::all) found = range_of(history_.held_.intervals(), position);
  if (found.size() == 0) {
    if (run_.begin <= position && position < run_.end) {
      found = run_;
    } else {
      std::size_t at = history_.index_of(position);
      if (at == history_.blocks_.size()) return {};
      const Block& block = history_.blocks_[at];
      if (block.stream != stream_ || position < block.offset || block.state == State::abandoned) return {};
      return clip({block.offset, block.end()}, position);
    }
  }
  // A range that the twin holds and one that the stream sent itself may be adjacent.
  if (run_.begin <= found.end && found.begin <= run_.end) {
    found.begin = std::min(found.begin, run_.begin);
    found.end = std::max(found.end, run_.end);
  }
  return clip(found, position);
}

Interval SharedHistory::Reach::context(std::uint64_t most) const {
  Interval own = run_.end > low_ && run_.size() ? clip(run_, run_.end - 1) : Interval{};
  if (whom_ == For::all && own.size() < most && own.size() < 4096 && !history_.held_.empty()) {
    Interval newest = history_.held_.intervals().back();
    newest = clip(newest, newest.end - 1);
    if (newest.size() > own.size()) own = newest;
  }
  if (whom_ == For::own_stream) own.begin = std::clamp(loaded_until_, own.begin, own.end);
  if (own.size() > most) own.begin = own.end - most;
  return own;
}

}  // namespace longhaul::reduction
