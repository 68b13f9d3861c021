// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/block_decoder.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "codecs/dedup/references.h"
#include "codecs/reduction/deflated.h"
#include "codecs/reduction/errors.h"
#include "codecs/work.h"
#include "codecs/zstd_stage.h"

namespace longhaul::reduction {
namespace {

constexpr std::size_t kMaxUnsealed = 4096;     // ranges
constexpr std::uint64_t kWorkPerBlock = 1000;  // in addition to its bytes

// Buffer for unpacked content: one for each thread that needs it.
MutableBytes opened_memory() {
  thread_local const auto memory = std::make_unique_for_overwrite<std::byte[]>(kMaxOpenedBytes);
  return {memory.get(), kMaxOpenedBytes};
}

}  // namespace

Result<std::optional<Slice>> BlockDecoder::decode(std::uint64_t stream, const BlockHeader& sent,
                                                  Bytes encoded) {
  if (!waiting_.empty())
    if (auto waiting = waiting_.find(stream); waiting != waiting_.end()) return resume(waiting, sent);
  auto placed_header = placed(stream, sent);
  if (!placed_header) {
    ++counters_.failed;
    return placed_header.error();
  }
  const BlockHeader& header = *placed_header;
  auto block = parse_encoded(header, encoded);
  bool in_ring = header.codec & kInRing;
  if (block && in_ring && !ring_) block = Error::malformed_block;
  if (!block) {
    ++counters_.failed;
    return block.error();
  }
  count_work(kWorkPerBlock + header.plain_bytes + block->content_bytes);
  if (in_ring) ends_[stream] = header.ring_offset + header.plain_bytes;
  std::byte* memory = nullptr;
  Slice plain = Slice::unfilled(header.plain_bytes, memory);
  Outcome outcome = restore(header, *block, {memory, header.plain_bytes});
  if (outcome == Outcome::restored) {
    if (in_ring) store(header.ring_offset, plain.bytes(), From::block);
    count(header, *block, encoded.size());
    return plain;
  }
  if (outcome == Outcome::mismatch) ++counters_.mismatches;
  // The twin cannot resend what its history does not hold; two blocks at one place are invalid.
  if (!in_ring || !waiting_at_.emplace(header.ring_offset, stream).second) {
    ++counters_.failed;
    return Error::not_restorable;
  }
  ++counters_.needs;
  waiting_.emplace(stream, Waiting{header.ring_offset, header.checksum, header.plain_bytes,
                                   Waiting::State::asked, Slice{}});
  ask_for(header, outcome == Outcome::mismatch ? Need::Reason::mismatch : Need::Reason::unreachable);
  count(header, *block, encoded.size());
  return std::nullopt;
}

// Requests of ended streams are dropped once they outnumber the others, so that a twin that reads no messages
// cannot make this side store more requests than it has streams.
void BlockDecoder::ask_for(const BlockHeader& header, Need::Reason reason) {
  constexpr std::size_t kFew = 64;
  if (needs_.size() >= 2 * waiting_.size() + kFew)
    std::erase_if(needs_, [this](const Need& need) { return !waiting_at_.contains(need.ring_offset); });
  needs_.push_back({header.ring_offset, header.plain_bytes, reason});
}

Result<BlockHeader> BlockDecoder::placed(std::uint64_t stream, BlockHeader header) {
  if (!(header.codec & kFollows)) return header;
  auto end = ends_.find(stream);
  if (!(header.codec & kInRing) || (header.codec & kLoads) || end == ends_.end() ||
      header.ring_offset > kMaxVarint - end->second)
    return Error::malformed_block;
  header.codec &= static_cast<std::uint8_t>(~kFollows);
  header.ring_offset += end->second;
  return header;
}

// Fills `plain` with the block's bytes, which are verified only by the checksum.
BlockDecoder::Outcome BlockDecoder::restore(const BlockHeader& header, EncodedBlock& block,
                                            MutableBytes plain) {
  Bytes content = block.body;
  if (header.codec & kZstd) {
    Bytes context;
    if (header.codec & kContext) {
      std::uint64_t end = header.ring_offset - block.context_distance;
      if (!ring_->holds(end - block.context_bytes, block.context_bytes)) return Outcome::unreachable;
      context = ring_->read(end - block.context_bytes, block.context_bytes);
    }
    thread_local std::array<std::byte, kMaxBlockPlainBytes> scratch;
    MutableBytes unreferred =
        (header.codec & kReferences) ? MutableBytes(scratch).first(plain.size()) : plain;
    MutableBytes target = (header.codec & kOpened) ? opened_memory() : unreferred;
    target = target.first(block.content_bytes);
    if (zstd_decompress(context, content, target) != target.size()) return Outcome::mismatch;
    content = target;
    if (header.codec & kOpened) {
      auto size = close_deflated(content, unreferred);
      if (!size || *size == 0 || (!(header.codec & kReferences) && *size != plain.size()))
        return Outcome::mismatch;
      content = unreferred.first(*size);
      block.content_bytes = static_cast<std::uint32_t>(*size);
    }
  }
  if (header.codec & kReferences) {
    auto restored = dedup::decode_references(*ring_, content, header.ring_offset, plain);
    if (!restored)
      return restored.error() == dedup::ReferenceError::not_held ? Outcome::unreachable : Outcome::mismatch;
  } else if (content.data() != plain.data()) {
    std::memcpy(plain.data(), content.data(), plain.size());
  }
  return checksum_.of(plain) == header.checksum ? Outcome::restored : Outcome::mismatch;
}

void BlockDecoder::store(std::uint64_t offset, Bytes plain, From from) {
  // Newer blocks may have replaced a late one: then it is delivered and not stored.
  if (!ring_->fits(offset, plain.size()) || held_.count() >= kMaxUntold) return;
  MutableBytes memory = ring_->reserve(offset, plain.size());
  std::memcpy(memory.data(), plain.data(), plain.size());
  held_.add({offset, offset + plain.size()});
  held_bytes_ += plain.size();
  if (from == From::disk) return;
  // Honest blocks are contiguous. If there are many ranges, the older half never becomes a segment.
  const auto& ranges = unsealed_.intervals();
  if (ranges.size() >= kMaxUnsealed) unsealed_.remove({0, ranges[ranges.size() / 2].begin});
  unsealed_.add({offset, offset + plain.size()});
}

bool BlockDecoder::take_unsealed(Interval range) {
  const auto& ranges = unsealed_.intervals();
  auto behind = std::upper_bound(ranges.begin(), ranges.end(), range.begin,
                                 [](std::uint64_t offset, const Interval& i) { return offset < i.begin; });
  const bool whole = behind != ranges.begin() && range.end <= std::prev(behind)->end;
  if (!whole || !ring_->holds(range.begin, range.size())) {
    ++counters_.segments_refused;
    return false;
  }
  unsealed_.remove(range);
  return true;
}

bool BlockDecoder::bring(std::uint64_t ring_offset, Bytes history) {
  if (!ring_ || !ring_->fits(ring_offset, history.size())) return false;
  store(ring_offset, history, From::disk);
  counters_.loaded_bytes += history.size();
  return true;
}

void BlockDecoder::leave_out(Interval range) {
  if (ring_ && ring_->fits(range.begin, range.size())) ring_->leave_out(range);
}

Result<std::optional<Slice>> BlockDecoder::resume(KeyedMap<std::uint64_t, Waiting>::iterator waiting,
                                                  const BlockHeader& sent) {
  if (waiting->second.state == Waiting::State::asked) return std::nullopt;
  Waiting block = std::move(waiting->second);
  waiting_.erase(waiting);
  bool same = sent.checksum == block.checksum && sent.plain_bytes == block.size;
  if (block.state == Waiting::State::failed || !same) {
    ++counters_.failed;
    return Error::not_restorable;
  }
  ++counters_.recovered;
  figures_ = {.plain_bytes = block.size, .after_dedup_bytes = block.size, .encoded_bytes = block.size};
  store(block.ring_offset, block.plain.bytes(), From::block);
  return std::move(block.plain);
}

std::optional<std::uint64_t> BlockDecoder::poll_ready() {
  while (!ready_.empty()) {
    std::uint64_t stream = ready_.front();
    ready_.pop_front();
    auto waiting = waiting_.find(stream);
    if (waiting != waiting_.end() && waiting->second.state != Waiting::State::asked) return stream;
  }
  return std::nullopt;
}

void BlockDecoder::forget(std::uint64_t stream) {
  ends_.erase(stream);
  auto waiting = waiting_.find(stream);
  if (waiting == waiting_.end()) return;
  if (waiting->second.state == Waiting::State::asked) waiting_at_.erase(waiting->second.ring_offset);
  waiting_.erase(waiting);
}

Result<void> BlockDecoder::on_hello(const Hello& message) {
  if (greeted_) return Error::unexpected_message;
  greeted_ = welcome_due_ = true;
  std::uint64_t bytes = std::min<std::uint64_t>(message.ring_bytes, ring_limit_bytes_);
  bytes -= bytes % 65'536;
  if (message.version != kVersion || bytes < kMinRingBytes) return {};
  if (auto ring = dedup::HistoryRing::make(static_cast<std::size_t>(bytes))) ring_.emplace(std::move(*ring));
  return {};
}

Result<void> BlockDecoder::on_plain(const PlainBlock& message) {
  auto at = waiting_at_.find(message.ring_offset);
  if (at == waiting_at_.end()) return {};  // its stream was forgotten meanwhile
  const Waiting& block = waiting_.at(at->second);
  bool right = message.plain.size() == block.size && checksum_.of(message.plain) == block.checksum;
  settle(message.ring_offset, right ? Waiting::State::answered : Waiting::State::failed,
         right ? Slice::copy_of(message.plain) : Slice{});
  return {};
}

Result<void> BlockDecoder::on_gone(const Gone& message) {
  settle(message.ring_offset, Waiting::State::failed, {});
  return {};
}

void BlockDecoder::settle(std::uint64_t ring_offset, Waiting::State state, Slice plain) {
  auto at = waiting_at_.find(ring_offset);
  if (at == waiting_at_.end()) return;
  Waiting& block = waiting_.at(at->second);
  block.state = state;
  block.plain = std::move(plain);
  ready_.push_back(at->second);
  waiting_at_.erase(at);
}

Result<void> BlockDecoder::on_floor(const Floor& message) {
  if (!ring_) return Error::unexpected_message;
  ring_->forget_before(message.ring_offset);
  return {};
}

void BlockDecoder::ask_to_clear() { clear_due_ = ring_.has_value(); }

std::optional<Slice> BlockDecoder::poll_message() {
  Buffer message;
  if (welcome_due_) {
    welcome_due_ = false;
    write_message(Welcome{kVersion, ring_ ? ring_->size() : 0, ring_ ? deflate_print() : 0}, message);
  } else if (!needs_.empty()) {
    write_message(needs_.front(), message);
    needs_.pop_front();
  } else if (clear_due_) {
    clear_due_ = false;
    write_message(Clear{}, message);
  } else if (!held_.empty()) {
    Held held;
    for (; !held_.empty() && held.ranges.size() < kMaxHeldRanges; held_.pop_front())
      held.ranges.push_back(held_.front());
    if (held_.empty()) held_bytes_ = 0;
    write_message(held, message);
  } else {
    return std::nullopt;
  }
  return Slice::copy_of(message);
}

void BlockDecoder::count(const BlockHeader& header, const EncodedBlock& block, std::size_t encoded_bytes) {
  figures_ = {.plain_bytes = header.plain_bytes,
              .after_dedup_bytes = block.content_bytes,
              .encoded_bytes = encoded_bytes};
  ++counters_.blocks;
  counters_.bytes.plain_bytes += figures_.plain_bytes;
  counters_.bytes.after_dedup_bytes += figures_.after_dedup_bytes;
  counters_.bytes.encoded_bytes += figures_.encoded_bytes;
}

DecoderCounters BlockDecoder::counters() const {
  DecoderCounters counters = counters_;
  if (ring_) {
    counters.ring_bytes = ring_->size();
    std::uint64_t head = ring_->head(), first = ring_->floor();
    counters.ring_filled_bytes = head > first ? std::min<std::uint64_t>(head - first, ring_->size()) : 0;
  }
  return counters;
}

}  // namespace longhaul::reduction
