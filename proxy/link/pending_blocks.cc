// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/pending_blocks.h"

#include <memory>

namespace longhaul::link {
namespace {

// Below this size it is better to gather bytes for a block than to end it where memory ends: a repeat costs
// as much as a block's head, which matters on a T1. Copying costs a fiftieth of encoding.
constexpr std::size_t kGatherBelow = kMaxBlockPlainBytes / 2;

}  // namespace

std::size_t PendingBlocks::next_block(std::size_t first) const {
  std::uint64_t begin = plain_.begin_offset(), end = plain_.end_offset();
  if (record_bytes_ > 0) end = records_[first_record_].position;
  end = std::min(end, isolation_change().value_or(end));
  // In a backlog each block is twice as large as the previous one: so the data that waits at the far side for
  // a complete block is never much more than the data before it.
  const std::size_t most = std::clamp(std::max(first, 2 * last_block_), std::size_t{1}, kMaxBlockPlainBytes);
  if (end - begin <= most) return static_cast<std::size_t>(end - begin);
  // Reads of a busy flow are as large as blocks: a block with the same boundaries need not be gathered.
  std::size_t whole = 0;
  plain_.visit({begin, end}, [&](Bytes piece) {
    if (whole + piece.size() > most) return false;
    whole += piece.size();
    return true;
  });
  return whole >= kGatherBelow ? whole : most;
}

Bytes PendingBlocks::front(std::size_t bytes) const {
  thread_local const auto gathered = std::make_unique_for_overwrite<std::byte[]>(kMaxBlockPlainBytes);
  const std::uint64_t begin = plain_.begin_offset();
  Bytes found;
  std::size_t size = 0;
  plain_.visit({begin, begin + bytes}, [&](Bytes piece) {
    if (piece.size() == bytes) {
      found = piece;
      return false;
    }
    std::copy(piece.begin(), piece.end(), gathered.get() + size);
    size += piece.size();
    return true;
  });
  return found.empty() ? Bytes(gathered.get(), size) : found;
}

template <class Element>
void PendingBlocks::forget_first(std::vector<Element>& all, std::size_t& first) {
  if (first == all.size())
    all = {};
  else if (first >= 64 && first > all.size() / 2)
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first));
  else
    return;
  first = 0;
}

void PendingBlocks::note_isolation(bool isolated) {
  if (plain_.empty()) front_is_isolated_ = back_is_isolated_ = isolated;
  if (isolated == back_is_isolated_) return;
  back_is_isolated_ = isolated;
  isolation_changes_.push_back(plain_.end_offset());
}

void PendingBlocks::drop(std::size_t bytes) {
  plain_.drop_until(plain_.begin_offset() + bytes);
  while (isolation_change() && *isolation_change() <= plain_.begin_offset()) {
    ++first_change_;
    front_is_isolated_ = !front_is_isolated_;
  }
  forget_first(isolation_changes_, first_change_);
}

std::optional<Slice> PendingBlocks::take_record() {
  if (record_bytes_ == 0 || records_[first_record_].position > plain_.begin_offset()) return std::nullopt;
  Slice wire = std::move(records_[first_record_++].wire);
  record_bytes_ -= wire.size();
  forget_first(records_, first_record_);
  return wire;
}

void PendingBlocks::clear() {
  drop(plain_.size());
  records_ = {};
  first_record_ = record_bytes_ = 0;
  last_block_ = 0;
}

}  // namespace longhaul::link
