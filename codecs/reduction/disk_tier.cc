// SPDX-License-Identifier: Apache-2.0
// What both sides have, what is said of it, and how it comes to the disk. How it comes back is in
// disk_tier_reading.cc.
#include "codecs/reduction/disk_tier.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "codecs/reduction/errors.h"

namespace longhaul::reduction {
namespace {

constexpr std::size_t kIdsPerMessage = 1'000;
// A twin that asks on and never listens breaks the protocol.
constexpr std::size_t kMaxAnswers = 16'384;
constexpr std::size_t kMaxTwins = 1u << 22;  // segments that the twin may name
// Copied and sampled before the processor's caches have lost them.
constexpr std::size_t kSealedAtOnce = 64u << 10;
}  // namespace

DiskTier::Id DiskTier::id_of(const SegmentName& name) {
  Buffer bytes;
  ByteWriter writer(bytes);
  write_name(name, writer);
  return XXH3_64bits(bytes.data(), bytes.size());
}

DiskTier::DiskTier(SegmentStore& store, const Sites& sites, std::uint64_t epoch, BlockEncoder& encoder,
                   BlockDecoder& decoder)
    : store_(store), sites_(sites), epoch_(epoch), encoder_(encoder), decoder_(decoder) {
  store_.attach(*this);
  for (const SegmentName& name : store_.list()) on_stored(name);
}

DiskTier::~DiskTier() {
  go_on(std::numeric_limits<std::size_t>::max());  // the twin has stored the same
  store_.detach(*this);
}

// ------------------------------------------------------------------------------------ what both have

const SegmentName* DiskTier::common(Id id) const {
  auto own = own_.find(id);
  return own != own_.end() && twins_.contains(id) ? &own->second : nullptr;
}

void DiskTier::join(Id id) {
  if (const SegmentName* name = common(id)) common_[{name->writer, name->epoch, name->first}] = id;
}

void DiskTier::part(Id id) {
  const SegmentName* name = common(id);
  if (!name) return;
  auto found = common_.find({name->writer, name->epoch, name->first});
  if (found != common_.end() && found->second == id) common_.erase(found);
}

void DiskTier::on_stored(const SegmentName& name) {
  Id id = id_of(name);
  own_[id] = name;
  join(id);
  have_.push_back(id);
}

void DiskTier::on_dropped(const SegmentName& name) {
  Id id = id_of(name);
  part(id);
  own_.erase(id);
  lost_.push_back(id);
}

Result<void> DiskTier::on_message(const OtherMessage& message) {
  ByteReader in(message.body);
  switch (message.type) {
    case kHave:
    case kLost:
      twin_has_disk_ = true;
      while (in.remaining()) {
        auto id = in.fixed64();
        if (!id) return Error::malformed_message;
        if (message.type == kLost) {
          part(*id);
          twins_.erase(*id);
        } else if (twins_.size() < kMaxTwins) {
          twins_.insert(*id);
          join(*id);
        }
      }
      return {};
    case kSealed: {
      auto first = in.varint(), length = in.varint();
      auto digest = in.bytes(16);
      if (!first || !length || !digest || *length == 0 || *length > kMaxSegmentBytes)
        return Error::malformed_message;
      dedup::HistoryRing* ring = decoder_.ring();
      if (!ring || !ring->holds(*first, *length)) return {};
      // Made before the twin heard that all is to be forgotten.
      if (forgets_ != forgets_answered_) return {};
      SegmentName name{.writer = sites_.twin,
                       .epoch = twin_epoch_,
                       .first = *first,
                       .length = static_cast<std::uint32_t>(*length)};
      std::memcpy(name.digest.data(), digest->data(), digest->size());
      // Where the histories differ the store refuses what does not match the digest.
      begin_sealing(SealingSegment::Of::twin, name);
      return {};
    }
    case kCannot: {
      auto id = in.fixed64();
      auto offset = in.varint(), length = in.varint();
      if (!id || !offset || !length || *length > kLoadBytes) return Error::malformed_message;
      part(*id);
      twins_.erase(*id);
      encoder_.give_up({*offset, *offset + *length});
      return {};
    }
    case kRemember: {
      if (messages_.size() >= kMaxAnswers) return Error::unexpected_message;
      seal_all();
      say(kRemembered);
      return {};
    }
    case kRemembered:
      // What was under way when the twin was asked was answered before it said this.
      if (!remembering_) return Error::unexpected_message;
      remembering_ = false;
      seal_all();
      return {};
    case kForget: {
      if (messages_.size() >= kMaxAnswers) return Error::unexpected_message;
      const std::uint64_t bytes = forget_shared();
      Buffer answer;
      ByteWriter writer(answer);
      writer.u8(kForgotten);
      writer.varint(bytes);
      messages_.push_back(Slice::copy_of(answer));
      return {};
    }
    case kForgotten: {
      auto bytes = in.varint();
      if (!bytes) return Error::malformed_message;
      if (forgets_answered_ == forgets_) return Error::unexpected_message;
      ++forgets_answered_;
      forgotten_by_twin_ = *bytes;
      return {};
    }
    default:
      return {};
  }
}

void DiskTier::say(Type type) {
  const std::byte message{type};
  messages_.push_back(Slice::copy_of({&message, 1}));
}

std::optional<Slice> DiskTier::poll_urgent() {
  if (cannot_.empty()) return std::nullopt;
  Slice message = std::move(cannot_.front());
  cannot_.pop_front();
  return message;
}

void DiskTier::finish() {
  seal_all();
  if (!twin_has_disk_ || std::exchange(remembering_, true)) return;
  say(kRemember);
}

void DiskTier::on_twin_epoch(std::uint64_t epoch) {
  twin_epoch_ = epoch;
  forget_sealing(SealingSegment::Of::twin);
}

void DiskTier::forget_both() {
  on_cleared();
  forget_sealing(SealingSegment::Of::twin);
  if (!twin_has_disk_) return;
  ++forgets_;
  say(kForget);
}

// Whatever sessions with this twin could use, or made: others' stays.
std::uint64_t DiskTier::forget_shared() {
  forget_sealing(SealingSegment::Of::own);
  forget_sealing(SealingSegment::Of::twin);
  std::vector<SegmentName> names;
  for (const auto& [id, name] : own_)
    if (twins_.contains(id) || name.writer == sites_.twin ||
        (name.writer == sites_.own && name.epoch == epoch_))
      names.push_back(name);
  std::uint64_t bytes = 0;
  for (const SegmentName& name : names) {
    bytes += name.length;
    store_.drop(name);
  }
  return bytes;
}

std::optional<Slice> DiskTier::poll_message() {
  go_on_sealing();  // what the twin sends is answered, which is a moment when nobody waits for a block
  if (auto cannot = poll_urgent()) return cannot;
  if (!messages_.empty()) {
    Slice message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }
  std::deque<Id>& ids = lost_.empty() ? have_ : lost_;
  if (ids.empty() && !std::exchange(greeting_due_, false)) return std::nullopt;
  Buffer message;
  ByteWriter writer(message);
  bool lost = &ids == &lost_;
  writer.u8(lost ? kLost : kHave);
  for (std::size_t count = 0; count < kIdsPerMessage && !ids.empty(); ids.pop_front()) {
    // Only what is so now is told: what came and went meanwhile was never there.
    if (own_.contains(ids.front()) == lost) continue;
    writer.fixed64(ids.front());
    ++count;
  }
  return Slice::copy_of(message);
}

// --------------------------------------------------------------------------------------- segments

void DiskTier::keep(SealingSegment::Sealed sealed) {
  // What is refused is counted there.
  (void)store_.put(sealed.name, {std::move(sealed.bytes)}, std::move(sealed.hooks));
}

// What is new and answered, in pieces of kSealBytes; with `rest` also what is shorter.
void DiskTier::seal(Rest rest) {
  const SharedHistory* shared = encoder_.shared();
  if (!shared || fresh_.empty()) return;
  std::uint64_t ring_bytes = encoder_.ring()->size();
  std::uint64_t reach = shared->head() > ring_bytes / 2 ? shared->head() - ring_bytes / 2 : 0;
  std::vector<Interval> ready, old;
  for (Interval fresh : fresh_.intervals()) {
    bool closed = rest == Rest::sealed || fresh.begin < reach;
    const auto& all = shared->held_ranges().intervals();
    auto held = std::lower_bound(all.begin(), all.end(), fresh.begin,
                                 [](const Interval& i, std::uint64_t offset) { return i.end <= offset; });
    for (; held != all.end() && held->begin < fresh.end; ++held) {
      Interval both{std::max(held->begin, fresh.begin), std::min(held->end, fresh.end)};
      while (both.begin < both.end) {
        std::uint64_t lap = both.begin / ring_bytes * ring_bytes + ring_bytes;
        Interval piece{both.begin, std::min({both.end, both.begin + kSealBytes, lap})};
        if (piece.size() == kSealBytes || piece.end == lap || (closed && piece.size() >= kLeastSealed))
          ready.push_back(piece);
        both.begin = piece.end;
      }
    }
    if (fresh.begin < reach) old.push_back({fresh.begin, std::min(fresh.end, reach)});
  }
  for (Interval piece : ready) {
    fresh_.remove(piece);
    if (piece.size() < kLeastSealed) continue;
    begin_sealing(SealingSegment::Of::own, {.writer = sites_.own,
                                            .epoch = epoch_,
                                            .first = piece.begin,
                                            .length = static_cast<std::uint32_t>(piece.size())});
  }
  for (Interval piece : old) fresh_.remove(piece);
}

// More than a history holds, or thousands of crumbs, are never waiting at once where the twin is honest.
void DiskTier::begin_sealing(SealingSegment::Of of, const SegmentName& name) {
  constexpr std::size_t kMostWaiting = 4096;
  const dedup::HistoryRing* ring = decoder_.ring() ? decoder_.ring() : encoder_.ring();
  while (!sealing_.empty() && (sealing_.size() >= kMostWaiting || sealing_bytes_ > 2 * ring->size()))
    go_on(sealing_.front().left());
  sealing_.emplace_back(of, name);
  sealing_bytes_ += name.length;
}

// As much as the blocks since the last time have earned.
void DiskTier::go_on_sealing() { go_on(std::exchange(may_seal_bytes_, 0)); }

void DiskTier::seal_all() {
  seal(Rest::sealed);
  go_on(std::numeric_limits<std::size_t>::max());
}

void DiskTier::go_on(std::size_t bytes) {
  while (!sealing_.empty() && bytes > 0) {
    SealingSegment& next = sealing_.front();
    const bool own = next.of() == SealingSegment::Of::own;
    const std::size_t left = next.left();
    if (!next.go_on(own ? encoder_.ring() : decoder_.ring(), std::min(bytes, kSealedAtOnce), pool_)) {
      sealing_bytes_ -= next.length();
      sealing_.pop_front();
      continue;
    }
    bytes -= std::min(bytes, left - next.left());
    if (next.left() > 0) continue;
    SealingSegment::Sealed sealed = next.take();
    sealing_bytes_ -= next.length();
    sealing_.pop_front();
    if (own) {
      Buffer message;
      ByteWriter writer(message);
      writer.u8(kSealed);
      writer.varint(sealed.name.first);
      writer.varint(sealed.name.length);
      writer.bytes(sealed.name.digest);
      messages_.push_back(Slice::copy_of(message));
    }
    keep(std::move(sealed));
  }
}

void DiskTier::forget_sealing(SealingSegment::Of of) {
  std::erase_if(sealing_, [&](const SealingSegment& one) {
    if (one.of() == of) sealing_bytes_ -= one.length();
    return one.of() == of;
  });
}

void DiskTier::on_cleared() {
  fresh_ = {};
  forget_sealing(SealingSegment::Of::own);
  flows_.clear();
  come_bytes_ = 0;
  loaded_.clear();
  loaded_in_order_.clear();
}

// Who reads on later finds his place again.
void DiskTier::on_quiet() {
  seal_all();
  pool_.release();
  for (auto& [stream, flow] : flows_)
    if (!flow.come.empty()) drop_come(flow);
}

void DiskTier::forget(std::uint64_t stream) {
  forget_flow(stream);
  brought_.erase(stream);
}

}  // namespace longhaul::reduction
