// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/ahead/waiting_reads.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace longhaul::ahead {
namespace {

// Where its data ends, as far as is known.
std::uint64_t known_end(const WaitingReads::Read& read) {
  return read.end_of_file ? std::min(read.end, std::max(*read.end_of_file, read.offset)) : read.end;
}

std::uint64_t lacking_bytes(const WaitingReads::Read& read) {
  const std::uint64_t end = known_end(read);
  std::uint64_t bytes = end - read.offset;
  for (const auto& [begin, piece] : read.pieces)
    if (begin < end) bytes -= std::min<std::uint64_t>(piece.size(), end - begin);
  return bytes;
}

}  // namespace

void WaitingReads::add(MessageNumber number, Read read) {
  (void)answered(number);
  Waiting waiting{.read = std::move(read)};
  waiting.lacking = lacking_bytes(waiting.read);
  for (const auto& [offset, piece] : waiting.read.pieces) waiting.held += piece.size();
  held_bytes_ += waiting.held;
  waiting_for_[waiting.read.open].insert(number);
  waiting_.insert_or_assign(number, std::move(waiting));
}

void WaitingReads::pushed(const Ahead& ahead, const Slice& bytes) {
  if (const auto numbers = waiting_for_.find(ahead.open); numbers != waiting_for_.end()) {
    for (const MessageNumber number : numbers->second) take(number, waiting_.at(number), ahead, bytes);
  }
  for (const Ready& ready : ready_)
    if (const auto waiting = waiting_.find(ready.message); waiting != waiting_.end()) stop_waiting(waiting);
}

// For one READ.
void WaitingReads::take(MessageNumber number, Waiting& waiting, const Ahead& ahead, const Slice& bytes) {
  Read& read = waiting.read;
  if (waiting.forwarded || read.stamp != ahead.stamp) return;
  const std::uint64_t begin = std::max(read.offset, ahead.offset);
  const std::uint64_t end = std::min(read.end, end_of(ahead.offset, bytes));
  if (begin < end) {
    std::vector<std::pair<std::uint64_t, Slice>> gaps;
    const Slice part =
        bytes.sub(static_cast<std::size_t>(begin - ahead.offset), static_cast<std::size_t>(end - begin));
    for_each_gap(read.pieces, begin, part, [&](std::uint64_t at, Slice gap) { gaps.emplace_back(at, gap); });
    for (auto& [at, gap] : gaps) {
      waiting.held += gap.size();
      held_bytes_ += gap.size();
      if (at < known_end(read)) waiting.lacking -= std::min<std::uint64_t>(gap.size(), known_end(read) - at);
      read.pieces.emplace(at, std::move(gap));
    }
  }
  if (ahead.end_of_file) shorten(waiting, *ahead.end_of_file);
  if (waiting.lacking != 0) return;
  if (auto data = gather(read.pieces, read.offset, read.end, read.end_of_file))
    ready_.push_back({number, read.open, read.offset, std::move(*data)});
}

// A file does not change under one stamp, so of several ends the least is right: a response without data
// shows only that the file ends there or before. What a READ lacks never grows by that, and each of its bytes
// is counted off once, whatever the far half sends.
void WaitingReads::shorten(Waiting& waiting, std::uint64_t end_of_file) {
  Read& read = waiting.read;
  const std::uint64_t before = known_end(read);
  if (read.end_of_file && *read.end_of_file <= end_of_file) return;
  read.end_of_file = end_of_file;
  const std::uint64_t after = known_end(read);
  if (after == before) return;
  waiting.lacking -= before - after;
  for (auto piece = first_behind(read.pieces, after); piece != read.pieces.end() && piece->first < before;
       ++piece)
    waiting.lacking += std::min(before, end_of(piece->first, piece->second)) - std::max(after, piece->first);
}

void WaitingReads::stop_waiting(KeyedMap<MessageNumber, Waiting>::iterator waiting) {
  held_bytes_ -= waiting->second.held;
  if (const auto numbers = waiting_for_.find(waiting->second.read.open); numbers != waiting_for_.end()) {
    numbers->second.erase(waiting->first);
    if (numbers->second.empty()) waiting_for_.erase(numbers);
  }
  waiting_.erase(waiting);
}

std::optional<WaitingReads::Ready> WaitingReads::poll_ready() {
  if (ready_.empty()) return std::nullopt;
  Ready first = std::move(ready_.front());
  ready_.pop_front();
  return first;
}

void WaitingReads::forwarded(MessageNumber number) {
  auto waiting = waiting_.find(number);
  if (waiting == waiting_.end()) return;
  waiting->second.forwarded = true;
  waiting->second.read.pieces.clear();
  held_bytes_ -= std::exchange(waiting->second.held, 0);
}

std::optional<WaitingReads::Answered> WaitingReads::answered(MessageNumber number) {
  auto waiting = waiting_.find(number);
  if (waiting == waiting_.end()) return std::nullopt;
  Answered answered{waiting->second.read.open, waiting->second.read.stamp, waiting->second.read.offset};
  stop_waiting(waiting);
  return answered;
}

}  // namespace longhaul::ahead
