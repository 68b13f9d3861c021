// SPDX-License-Identifier: Apache-2.0
// Which segments both sides have, the messages about them, and how they are written to disk. Reading is in
// disk_tier_reading.cc.
#include "codecs/reduction/disk_tier.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "codecs/reduction/errors.h"

namespace longhaul::reduction {
namespace {

constexpr std::size_t kIdsPerMessage = 1'000;
// A twin that keeps requesting and reads no answers violates the protocol.
constexpr std::size_t kMaxAnswers = 16'384;
// Copied and sampled while still in the processor's caches.
constexpr std::size_t kSealedAtOnce = 64u << 10;
// Steps for one session before others are served: about half a millisecond each.
constexpr std::size_t kSealedPerTurn = 1u << 20;
constexpr std::size_t kForgottenPerTurn = 64;
// Blocks in either direction earn work on segments, up to this much.
constexpr std::size_t kMostEarned = 4u << 20;
// Newly answered bytes that justify a search of the history.
constexpr std::uint64_t kLookedThroughFor = 1u << 20;

SegmentRights with(SegmentRights rights, const SiteId& peer) {
  rights.own.push_back(peer);
  return rights;
}

}  // namespace

DiskTier::DiskTier(SegmentStore& store, const Sites& sites, SegmentRights rights, std::uint64_t epoch,
                   BlockEncoder& encoder, BlockDecoder& decoder)
    : sites_(sites),
      store_(store, sites.own, with(std::move(rights), sites.twin), *this),
      epoch_(epoch),
      encoder_(encoder),
      decoder_(decoder) {
  store_.tell_all();
}

// The twin has stored the same; a session that ends in order has completed this before.
DiskTier::~DiskTier() { go_on(kSealedPerTurn); }

// ------------------------------------------------------------------------------------ what both have

void DiskTier::on_stored(const SegmentName& name) {
  if (common_.add_own(name, whose(name))) have_.push_back(CommonSegments::id_of(name));
}

// Loads already requested from the disk still arrive.
void DiskTier::set_rights(SegmentRights rights) {
  store_.set_rights(with(std::move(rights), sites_.twin));
  for (const SegmentName& name : common_.all_own())
    if (!store_.may_read(name)) on_dropped(name);
  store_.tell_all();
}

void DiskTier::on_dropped(const SegmentName& name) {
  if (common_.remove_own(name)) lost_.push_back(CommonSegments::id_of(name));
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
          common_.remove_twins(*id);
        } else {
          common_.add_twins(*id);
        }
      }
      return {};
    case kSealed:
      return on_sealed(in);
    case kCannot:
      return on_cannot(in);
    case kRemember:
      // One at a time, because each costs a search of the history.
      if (remember_due_ || messages_.size() >= kMaxAnswers) return Error::unexpected_message;
      remember_due_ = true;
      seal_all();
      answer_what_is_done();
      return {};
    case kRemembered:
      // Everything under way when the twin was asked was answered before this message.
      if (!remembering_ || remembered_) return Error::unexpected_message;
      remembered_ = true;
      seal_all();
      answer_what_is_done();
      return {};
    case kForget:
      if (forgetting_ || messages_.size() >= kMaxAnswers) return Error::unexpected_message;
      forgetting_ = true;
      to_forget_ = common_.peers_count();
      forgotten_bytes_ = 0;
      forget_sealing(SealingSegment::Of::own);
      forget_sealing(SealingSegment::Of::twin);
      forget_some();
      return {};
    case kForgotten:
      return on_forgotten(in);
    default:
      return {};
  }
}

Result<void> DiskTier::on_sealed(ByteReader& in) {
  auto first = in.varint(), length = in.varint();
  auto digest = in.bytes(16);
  if (!first || !length || !digest || *length < kMinSealedBytes || *length > kMaxSegmentBytes)
    return Error::malformed_message;
  // Requested before the twin learned that everything is to be forgotten.
  if (forget_asked_) return {};
  if (!decoder_.ring() || !decoder_.take_unsealed({*first, *first + *length})) return {};
  SegmentName name{.writer = sites_.twin,
                   .reader = sites_.own,
                   .epoch = twin_epoch_,
                   .first = *first,
                   .length = static_cast<std::uint32_t>(*length)};
  std::memcpy(name.digest.data(), digest->data(), digest->size());
  begin_sealing(SealingSegment::Of::twin, name);
  return {};
}

Result<void> DiskTier::on_cannot(ByteReader& in) {
  auto id = in.fixed64();
  auto offset = in.varint(), length = in.varint();
  if (!id || !offset || !length || *length > kLoadBytes) return Error::malformed_message;
  common_.remove_twins(*id);
  // A load that was not announced, or is out of reach by now, need not be cancelled.
  auto known = announced_.find(*offset);
  if (known == announced_.end() || known->second.given_up) return {};
  Announced& load = known->second;
  if (load.run.first != *id || load.length != *length) return {};
  load.given_up = true;
  encoder_.give_up(load.stream, {*offset, *offset + *length});
  return {};
}

Result<void> DiskTier::on_forgotten(ByteReader& in) {
  auto bytes = in.varint();
  if (!bytes) return Error::malformed_message;
  if (!forget_asked_) return Error::unexpected_message;
  forgotten_by_twin_ += *bytes;
  forget_asked_ = std::exchange(forget_asked_again_, false);
  if (forget_asked_) say(kForget);
  return {};
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
  if (twin_has_disk_ && !std::exchange(remembering_, true)) ask_to_remember_ = true;
  answer_what_is_done();
}

void DiskTier::on_twin_epoch(std::uint64_t epoch) {
  twin_epoch_ = epoch;
  forget_sealing(SealingSegment::Of::twin);
}

void DiskTier::forget_both() {
  on_cleared();
  forget_sealing(SealingSegment::Of::twin);
  if (!twin_has_disk_) return;
  if (forget_asked_) {
    forget_asked_again_ = true;
    return;
  }
  forget_asked_ = true;
  forgotten_by_twin_ = 0;
  say(kForget);
}

// Only the twin's segments: those of others stay.
void DiskTier::forget_some() {
  for (std::size_t count = 0; to_forget_ > 0 && count < kForgottenPerTurn; ++count, --to_forget_) {
    const SegmentName* next = common_.any_of_peers();
    if (!next) {
      to_forget_ = 0;
      break;
    }
    const SegmentName name = *next;
    forgotten_bytes_ += name.length;
    store_.drop(name);
  }
  if (to_forget_ > 0) return;
  forgetting_ = false;
  Buffer answer;
  ByteWriter writer(answer);
  writer.u8(kForgotten);
  writer.varint(forgotten_bytes_);
  messages_.push_back(Slice::copy_of(answer));
}

void DiskTier::work() {
  if (forgetting_) forget_some();
  if (hurry_) go_on(kSealedPerTurn);
  answer_what_is_done();
}

void DiskTier::answer_what_is_done() {
  if (!sealing_.empty()) return;
  hurry_ = false;
  // Sent after the segments sealed here, which the twin seals too before it answers.
  if (std::exchange(ask_to_remember_, false)) say(kRemember);
  if (std::exchange(remember_due_, false)) say(kRemembered);
  if (std::exchange(remembered_, false)) remembering_ = false;
}

std::optional<Slice> DiskTier::poll_message() {
  go_on_sealing();  // the twin's blocks are acknowledged, if none is waited for
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
    // Only the current state is reported: segments that came and went meanwhile are not mentioned.
    if ((common_.own(ids.front()) != nullptr) == lost) continue;
    writer.fixed64(ids.front());
    ++count;
  }
  return Slice::copy_of(message);
}

// --------------------------------------------------------------------------------------- segments

void DiskTier::keep(SealingSegment::Sealed sealed, SealingSegment::Of of) {
  if (of == SealingSegment::Of::own) {
    Buffer message;
    ByteWriter writer(message);
    writer.u8(kSealed);
    writer.varint(sealed.name.first);
    writer.varint(sealed.name.length);
    writer.bytes(sealed.name.digest);
    messages_.push_back(Slice::copy_of(message));
  }
  // Refused segments are counted there.
  (void)store_.put(sealed.name, std::move(sealed.bytes), std::move(sealed.hooks));
}

// New and answered ranges, in pieces of kSealBytes; with `rest` also shorter ones. The search is paid for by
// the bytes answered since the last one.
void DiskTier::seal(Rest rest) {
  const SharedHistory* shared = encoder_.shared();
  if (!shared || fresh_.empty()) return;
  const std::uint64_t answered = shared->answered_bytes();
  if (answered - (rest == Rest::sealed ? sealed_rest_at_ : sealed_at_) <
      (rest == Rest::sealed ? 1 : kLookedThroughFor))
    return;
  sealed_at_ = answered;
  if (rest == Rest::sealed) sealed_rest_at_ = answered;
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
        if (piece.size() == kSealBytes || piece.end == lap || (closed && piece.size() >= kMinSealedBytes))
          ready.push_back(piece);
        both.begin = piece.end;
      }
    }
    if (fresh.begin < reach) old.push_back({fresh.begin, std::min(fresh.end, reach)});
  }
  for (Interval piece : ready) {
    fresh_.remove(piece);
    if (piece.size() < kMinSealedBytes) continue;
    begin_sealing(SealingSegment::Of::own, {.writer = sites_.own,
                                            .reader = sites_.twin,
                                            .epoch = epoch_,
                                            .first = piece.begin,
                                            .length = static_cast<std::uint32_t>(piece.size())});
  }
  for (Interval piece : old) fresh_.remove(piece);
}

// An honest twin never has more than a history, or thousands of small pieces, waiting at once. The rest is
// dropped.
void DiskTier::begin_sealing(SealingSegment::Of of, const SegmentName& name) {
  constexpr std::size_t kMostWaiting = 4096;
  const dedup::HistoryRing* ring = decoder_.ring() ? decoder_.ring() : encoder_.ring();
  if (sealing_.size() >= kMostWaiting || sealing_bytes_ > 2 * ring->size()) return;
  sealing_.emplace_back(of, name);
  sealing_bytes_ += name.length;
}

// As much work as the blocks since the last call have earned.
void DiskTier::go_on_sealing() {
  may_seal_bytes_ = sealing_.empty() ? 0 : std::min(may_seal_bytes_, kMostEarned);
  const std::size_t bytes = std::min(may_seal_bytes_, kSealedPerTurn);
  may_seal_bytes_ -= bytes;
  go_on(bytes);
  answer_what_is_done();
}

void DiskTier::seal_all() {
  seal(Rest::sealed);
  hurry_ = !sealing_.empty();
}

void DiskTier::go_on(std::size_t bytes) {
  while (!sealing_.empty() && bytes > 0) {
    SealingSegment& next = sealing_.front();
    const SealingSegment::Of of = next.of();
    const std::size_t left = next.left();
    const bool here = next.go_on(of == SealingSegment::Of::own ? encoder_.ring() : decoder_.ring(),
                                 std::min(bytes, kSealedAtOnce), pool_);
    bytes -= std::min(bytes, left - next.left());
    if (here && next.left() > 0) continue;
    auto sealed = here ? next.take() : std::nullopt;
    sealing_bytes_ -= next.length();
    sealing_.pop_front();
    if (sealed) keep(std::move(*sealed), of);
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
  announced_.clear();
}

// A stream that continues later finds its place again.
void DiskTier::on_quiet() {
  seal_all();
  if (sealing_.empty()) pool_.release();
  for (auto& [stream, flow] : flows_)
    if (!flow.come.empty()) drop_come(flow);
}

void DiskTier::forget(std::uint64_t stream) {
  forget_flow(stream);
  brought_.erase(stream);
}

}  // namespace longhaul::reduction
