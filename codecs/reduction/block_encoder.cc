// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/block_encoder.h"

#include <cassert>
#include <cstring>

#include "codecs/dedup/references.h"
#include "codecs/reduction/deflated.h"
#include "codecs/reduction/errors.h"
#include "codecs/work.h"

namespace longhaul::reduction {
namespace {

// A block's head takes about 20 bytes: below this there is nothing to gain.
constexpr std::size_t kMinBlockBytes = 64;
// Smaller blocks of a stream that never shrinks do not save their heads either.
constexpr std::size_t kMinHopelessBytes = 1024;
// How many requests the twin may have outstanding: more than there are streams to wait.
constexpr std::size_t kMaxNeeded = 65'536;
// Answers for blocks that were answered before; our own decoder never sends any.
constexpr std::uint64_t kMaxAnsweredAgain = 1u << 16;
// Allocating the index's pages again costs about as much as encoding this many bytes.
constexpr std::uint64_t kWorthReleasing = 1u << 20;
// A repeat within zstd's reach costs zstd half as much as a token; searching for longer ones does not pay.
constexpr std::uint32_t kMaxZstdRepeat = 1024;
// Fast search and compression, for lines where the time of encoding matters.
constexpr std::uint64_t kWorkPerByte = 4;

std::size_t whole_ring(std::size_t bytes) {
  bytes -= bytes % 65'536;
  return bytes < kMinRingBytes ? 0 : bytes;
}

}  // namespace

BlockEncoder::BlockEncoder(std::size_t ring_bytes, std::uint64_t epoch, const BlockChecksum& checksum)
    : checksum_(checksum),
      asked_ring_bytes_(whole_ring(ring_bytes)),
      epoch_(epoch),
      hello_due_(asked_ring_bytes_ > 0) {}

BlockEncoder::Flow& BlockEncoder::flow_of(std::uint64_t stream) { return flows_[stream]; }

// Late: a session that sends nothing uses no address space.
bool BlockEncoder::make_history() {
  if (history_) return true;
  if (ring_bytes_ == 0) return false;
  auto ring = dedup::HistoryRing::make(ring_bytes_);
  auto finder = dedup::MatchFinder::make({.ring_bytes = ring_bytes_});
  if (!ring || !finder) {
    ring_bytes_ = 0;
    return false;
  }
  std::uint64_t start = ring->head();
  history_.emplace(History{std::move(*ring), std::move(*finder), SharedHistory(ring_bytes_, start)});
  reclaimed_ = start;
  return true;
}

std::optional<std::uint64_t> BlockEncoder::place(Bytes plain) {
  if (!make_history()) return std::nullopt;
  std::uint64_t offset = history_->ring.place(plain.size());
  if (!history_->shared.admits(offset, plain.size())) {
    ++counters_.horizon_stalls;
    return std::nullopt;
  }
  MutableBytes memory = history_->ring.reserve(offset, plain.size());
  std::memcpy(memory.data(), plain.data(), plain.size());
  return offset;
}

std::optional<BlockHeader> BlockEncoder::encode(std::uint64_t stream, const ReductionStages& stages,
                                                Bytes plain, Buffer& out) {
  assert(plain.size() <= kMaxBlockPlainBytes);
  count_work(kWorkPerByte * plain.size());
  Flow& flow = flow_of(stream);
  std::size_t least = flow.trials.gave_up() ? kMinHopelessBytes : kMinBlockBytes;
  if (plain.size() < least && !flow.loads) {
    counters_.passed_bytes += plain.size();
    return std::nullopt;
  }
  BlockHeader header;
  header.plain_bytes = static_cast<std::uint32_t>(plain.size());
  header.checksum = checksum_.of(plain);
  EncodedBlock fields;
  figures_ = {};
  copies_.clear();
  Bytes content = plain;
  Interval context;
  const auto whom = stages.dedup_memory ? SharedHistory::For::all : SharedHistory::For::own_stream;
  thread_local Buffer referring;
  if (auto offset = stages.dedup_memory || stages.compression ? place(plain) : std::nullopt) {
    header.codec |= kInRing;
    header.ring_offset = *offset;
    // The ring's copy is adjacent to its context.
    content = history_->ring.read(*offset, plain.size());
    SharedHistory::Reach reach(history_->shared, stream, flow.track, *offset, whom);
    std::size_t literals = plain.size();
    if (stages.dedup_memory) {
      history_->finder.set_thinner(compression_.effort().thinner_samples);
      history_->finder.find(history_->ring, *offset, plain.size(), reach, copies_, &flow.continuation);
      for (const dedup::Copy& copy : copies_) literals -= copy.length;
    }
    if (stages.compression && literals >= Compression::kMinBytes) {
      context = reach.context(compression_.effort().context_for(literals));
      keep_worthwhile(context);
    }
    if (!copies_.empty()) {
      referring.clear();
      dedup::encode_references(*offset, content, copies_, referring);
      if (referring.size() < plain.size()) {
        header.codec |= kReferences;
        content = referring;
      }
    }
    if (flow.loads) {
      header.codec |= kLoads;
      fields.loads = *flow.loads;
    }
  }
  std::size_t begin = out.size();
  fields.content_bytes = static_cast<std::uint32_t>(content.size());
  if (stages.compression) {
    Compression::Context before;
    if (context.size())
      before = {.bytes = history_->ring.read(context.begin, static_cast<std::size_t>(context.size())),
                .distance = header.ring_offset - context.end};
    compression_.compress(flow.trials, before, content, header.codec, fields, out);
  }
  if (!(header.codec & kZstd)) {
    write_encoded_fields(header.codec, fields, out);
    append(out, content);
  }
  if (header.codec & kInRing) {
    const std::uint64_t offset = header.ring_offset;
    history_->shared.add(stream, flow.track, offset, plain.size(), whom);
    flow.loads.reset();
    if (flow.end && !(header.codec & kLoads)) {
      // Offsets are long, and mostly implied; but loads are resolved before the block is examined.
      header.codec |= kFollows;
      header.ring_offset = offset - flow.end;
    }
    flow.end = offset + plain.size();
  } else if (!(header.codec & kZstd)) {
    // Nothing was gained, and the block is not in the history.
    out.resize(begin);
    counters_.passed_bytes += plain.size();
    return std::nullopt;
  }
  count(header, content.size(), out.size() - begin);
  return header;
}

// Short repeats that zstd sees itself are better left to it.
void BlockEncoder::keep_worthwhile(Interval context) {
  if (context.size() == 0) return;
  std::erase_if(copies_, [&](const dedup::Copy& copy) {
    return copy.length < kMaxZstdRepeat && copy.source >= context.begin &&
           copy.source + copy.length <= context.end;
  });
}

void BlockEncoder::count(const BlockHeader& header, std::size_t content_bytes, std::size_t encoded_bytes) {
  figures_.plain_bytes = header.plain_bytes;
  figures_.after_dedup_bytes = content_bytes;
  figures_.encoded_bytes = encoded_bytes;
  if (header.codec & kReferences) {
    figures_.copies = copies_.size();
    for (const dedup::Copy& copy : copies_) {
      figures_.copied_bytes += copy.length;
      std::size_t bucket = 0;
      while (bucket < kHitLengthBounds.size() && copy.length >= kHitLengthBounds[bucket]) ++bucket;
      ++counters_.hits[bucket];
    }
  }
  ++counters_.blocks;
  BlockFigures& sum = counters_.bytes;
  sum.plain_bytes += figures_.plain_bytes;
  sum.after_dedup_bytes += figures_.after_dedup_bytes;
  sum.encoded_bytes += figures_.encoded_bytes;
  sum.copies += figures_.copies;
  sum.copied_bytes += figures_.copied_bytes;
  sum.disk_bytes += figures_.disk_bytes;
}

void BlockEncoder::forget(std::uint64_t stream) {
  auto flow = flows_.find(stream);
  if (flow == flows_.end()) return;
  if (history_) history_->shared.abandon(flow->second.track);
  flows_.erase(flow);
}

std::optional<std::uint64_t> BlockEncoder::append_history(std::uint64_t stream, Bytes history) {
  auto offset = place(history);
  if (!offset) return std::nullopt;
  history_->finder.insert(history_->ring, *offset, history.size());
  StreamTrack& track = flow_of(stream).track;
  history_->shared.add(stream, track, *offset, history.size());
  track.loaded_until = *offset + history.size();
  counters_.loaded_bytes += history.size();
  return offset;
}

void BlockEncoder::announce_load(std::uint64_t stream, Bytes load) {
  Flow& flow = flow_of(stream);
  if (!flow.loads) flow.loads = std::make_unique<Buffer>();
  append(*flow.loads, load);
}

void BlockEncoder::give_up(std::uint64_t stream, Interval range) {
  if (!history_) return;
  history_->shared.give_up(range);
  if (auto flow = flows_.find(stream); flow != flows_.end()) {
    Interval& run = flow->second.track.run;
    if (run.begin < range.end && range.begin < run.end) run.begin = std::min(run.end, range.end);
  }
  given_up_at_ = history_->shared.head();
}

Result<void> BlockEncoder::on_welcome(const Welcome& message) {
  if (hello_due_ || welcomed_ || asked_ring_bytes_ == 0) return Error::unexpected_message;
  if (message.ring_bytes > asked_ring_bytes_) return Error::malformed_message;
  welcomed_ = true;
  ring_bytes_ = message.version == kVersion ? whole_ring(static_cast<std::size_t>(message.ring_bytes)) : 0;
  if (ring_bytes_ != message.ring_bytes) ring_bytes_ = 0;  // a size that no ring can have
  // The twin packs deflate streams again to the very bytes that this side expects.
  compression_.allow_opening(ring_bytes_ && message.deflates == deflate_print());
  return {};
}

Result<void> BlockEncoder::on_held(const Held& message) {
  if (!history_ || message.ranges.back().end > history_->shared.head()) return Error::unexpected_message;
  for (Interval range : message.ranges) history_->shared.on_held(range);
  // It repeats earlier answers; a twin that does so again and again only causes work.
  if (history_->shared.answered_again() > kMaxAnsweredAgain) return Error::unexpected_message;
  return {};
}

Result<void> BlockEncoder::on_need(const Need& message) {
  if (!history_ || message.ring_offset < kRingStart ||
      message.ring_offset + message.size > history_->shared.head() || needed_.size() == kMaxNeeded)
    return Error::unexpected_message;
  // A block is requested once: so there are never more requests than blocks sent.
  needed_bytes_ += message.size;
  if (needed_bytes_ > history_->shared.head() - kRingStart) return Error::unexpected_message;
  ++counters_.needs;
  if (message.reason == Need::Reason::mismatch) {
    ++counters_.mismatches;
    compression_.allow_opening(false);  // this may be the cause, and would be again
  }
  needed_.push_back({message.ring_offset, message.size});
  SharedHistory& shared = history_->shared;
  // The twin has already reported that it could not load this from disk, and nothing refers to it any more;
  // this block was under way.
  if (message.reason == Need::Reason::unreachable && message.ring_offset < given_up_at_) return {};
  // The histories differ at an unknown place: later references point only to later bytes. Done once for all
  // blocks that were under way; and not for a block that was given up, which may simply have come too late.
  if (message.ring_offset >= shared.floor() && message.ring_offset + shared.horizon() >= shared.head()) {
    shared.start_over();
    ++counters_.restarts;
  }
  return {};
}

void BlockEncoder::clear(ClearedBy by) {
  if (!history_ || history_->shared.floor() == history_->shared.head()) return;
  const std::uint64_t since_floor = history_->shared.head() - history_->shared.floor();
  history_->shared.start_over();
  if (by == ClearedBy::owner || since_floor >= kWorthReleasing) history_->finder.clear();
  ++counters_.restarts;
}

// Blocks from before the floor may still refer to bytes before it, or be requested.
bool BlockEncoder::floor_due() const {
  return history_ && reclaimed_ < history_->shared.floor() &&
         history_->shared.oldest_unanswered() >= history_->shared.floor();
}

std::optional<Slice> BlockEncoder::poll_message() {
  Buffer message;
  if (hello_due_) {
    hello_due_ = false;
    write_message(Hello{kVersion, epoch_, asked_ring_bytes_}, message);
  } else if (!needed_.empty()) {
    Range range = needed_.front();
    needed_.pop_front();
    if (range.offset >= reclaimed_ && history_->ring.holds(range.offset, range.size)) {
      write_message(PlainBlock{range.offset, history_->ring.read(range.offset, range.size)}, message);
    } else {
      ++counters_.gone;
      write_message(Gone{range.offset}, message);
    }
  } else if (floor_due()) {
    reclaimed_ = history_->shared.floor();
    history_->ring.forget_before(reclaimed_);
    write_message(Floor{reclaimed_}, message);
  } else {
    return std::nullopt;
  }
  return Slice::copy_of(message);
}

EncoderCounters BlockEncoder::counters() const {
  EncoderCounters counters = counters_;
  counters.ring_bytes = ring_bytes_;
  compression_.fill(counters);
  if (history_) {
    const SharedHistory& shared = history_->shared;
    counters.ring_filled_bytes = std::min<std::uint64_t>(shared.head() - shared.floor(), ring_bytes_);
    counters.unanswered_bytes = shared.head() - shared.oldest_unanswered();
  }
  return counters;
}

}  // namespace longhaul::reduction
