// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/disk_tier.h"

#include <utility>

#include "codecs/reduction/errors.h"

namespace longhaul::reduction {
namespace {

constexpr std::size_t kIdsPerMessage = 1'000;
// A twin that keeps requesting and reads no answers violates the protocol.
constexpr std::size_t kMaxAnswers = 16'384;
constexpr std::size_t kForgottenPerTurn = 64;

// A block that is entirely a repeat adds nothing: content is stored once. One with a little new content is
// stored whole, so that reading along the segment later finds no holes.
bool is_new(std::uint64_t copied, std::uint64_t size) { return copied * 50 < size * 49; }

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
      decoder_(decoder),
      ahead_(store_, common_, {sites.own, epoch}, encoder),
      loads_(store_, common_, decoder) {
  store_.tell_all();
}

// The twin has stored the same; a session that ended in order has completed this before.
DiskTier::~DiskTier() { go_on(SealingQueue::kPerTurn); }

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

void DiskTier::on_loaded(LoadId load, std::optional<Slice> bytes) {
  if (!loads_.on_loaded(load, bytes)) ahead_.on_loaded(load, std::move(bytes));
}

Result<void> DiskTier::on_message(const OtherMessage& message) {
  switch (const auto type = static_cast<DiskMessage>(message.type)) {
    case DiskMessage::have:
    case DiskMessage::lost:
      twin_has_disk_ = true;
      for (ByteReader in(message.body); in.remaining();) {
        auto id = in.fixed64();
        if (!id) return Error::malformed_message;
        if (type == DiskMessage::lost) {
          common_.remove_twins(*id);
        } else {
          common_.add_twins(*id);
        }
      }
      return {};
    case DiskMessage::sealed:
      return on_sealed(message.body);
    case DiskMessage::cannot:
      return on_cannot(message.body);
    case DiskMessage::remember:
      // One at a time, because each costs a search of the history.
      if (remember_due_ || messages_.size() >= kMaxAnswers) return Error::unexpected_message;
      remember_due_ = true;
      seal_all();
      answer_what_is_done();
      return {};
    case DiskMessage::remembered:
      // Everything under way at the time of the request was answered before this message.
      if (!remembering_ || remembered_) return Error::unexpected_message;
      remembered_ = true;
      seal_all();
      answer_what_is_done();
      return {};
    case DiskMessage::forget:
      if (forgetting_ || messages_.size() >= kMaxAnswers) return Error::unexpected_message;
      forgetting_ = true;
      to_forget_ = common_.peers_count();
      forgotten_bytes_ = 0;
      sealing_.forget(SealingSegment::Of::own);
      sealing_.forget(SealingSegment::Of::twin);
      forget_some();
      return {};
    case DiskMessage::forgotten:
      return on_forgotten(message.body);
    default:
      return {};
  }
}

Result<void> DiskTier::on_sealed(Bytes body) {
  auto sealed = parse_sealed(body);
  if (!sealed) return sealed.error();
  // Requested before the twin was informed that everything is to be forgotten.
  if (forget_asked_) return {};
  if (!decoder_.ring() || !decoder_.take_unsealed({sealed->first, sealed->first + sealed->length})) return {};
  begin_sealing(SealingSegment::Of::twin, {.writer = sites_.twin,
                                           .reader = sites_.own,
                                           .epoch = twin_epoch_,
                                           .first = sealed->first,
                                           .length = sealed->length,
                                           .digest = sealed->digest});
  return {};
}

Result<void> DiskTier::on_cannot(Bytes body) {
  auto load = parse_cannot(body);
  if (!load) return load.error();
  common_.remove_twins(load->segment);
  ahead_.on_cannot(*load);
  return {};
}

Result<void> DiskTier::on_forgotten(Bytes body) {
  auto bytes = parse_forgotten(body);
  if (!bytes) return bytes.error();
  if (!forget_asked_) return Error::unexpected_message;
  forgotten_by_twin_ += *bytes;
  forget_asked_ = std::exchange(forget_asked_again_, false);
  if (forget_asked_) say(DiskMessage::forget);
  return {};
}

void DiskTier::finish() {
  seal_all();
  if (twin_has_disk_ && !std::exchange(remembering_, true)) ask_to_remember_ = true;
  answer_what_is_done();
}

void DiskTier::on_twin_epoch(std::uint64_t epoch) {
  twin_epoch_ = epoch;
  sealing_.forget(SealingSegment::Of::twin);
}

void DiskTier::forget_both() {
  on_cleared();
  sealing_.forget(SealingSegment::Of::twin);
  if (!twin_has_disk_) return;
  if (forget_asked_) {
    forget_asked_again_ = true;
    return;
  }
  forget_asked_ = true;
  forgotten_by_twin_ = 0;
  say(DiskMessage::forget);
}

// Only the twin's segments: those of others remain.
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
  messages_.push_back(forgotten_message(forgotten_bytes_));
}

void DiskTier::work() {
  if (forgetting_) forget_some();
  if (hurry_) go_on(SealingQueue::kPerTurn);
  answer_what_is_done();
}

void DiskTier::answer_what_is_done() {
  if (!sealing_.empty()) return;
  hurry_ = false;
  // Sent after the segments sealed here, which the twin also seals before it responds.
  if (std::exchange(ask_to_remember_, false)) say(DiskMessage::remember);
  if (std::exchange(remember_due_, false)) say(DiskMessage::remembered);
  if (std::exchange(remembered_, false)) remembering_ = false;
}

std::optional<Slice> DiskTier::poll_message() {
  go_on_sealing();  // the twin's blocks are acknowledged, unless one is waited for
  if (auto cannot = poll_urgent()) return cannot;
  if (!messages_.empty()) {
    Slice message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }
  std::deque<SegmentId>& ids = lost_.empty() ? have_ : lost_;
  if (ids.empty() && !std::exchange(greeting_due_, false)) return std::nullopt;
  Buffer message;
  ByteWriter writer(message);
  bool lost = &ids == &lost_;
  writer.u8(static_cast<std::uint8_t>(lost ? DiskMessage::lost : DiskMessage::have));
  for (std::size_t count = 0; count < kIdsPerMessage && !ids.empty(); ids.pop_front()) {
    // Only the current state is reported: segments that were added and removed meanwhile are omitted.
    if ((common_.own(ids.front()) != nullptr) == lost) continue;
    writer.fixed64(ids.front());
    ++count;
  }
  return Slice::copy_of(message);
}

// --------------------------------------------------------------------------------------- segments

void DiskTier::on_encoded(std::uint64_t stream, const ReductionStages& stages, const BlockHeader& header) {
  const bool used =
      stages.dedup_disk && stages.dedup_memory && (header.codec & kInRing) != 0 && twin_has_disk_;
  if (used && is_new(encoder_.last().copied_bytes, header.plain_bytes))
    fresh_.add({encoder_.shared()->head() - header.plain_bytes, encoder_.shared()->head()});
  ahead_.on_encoded(stream, header, used ? DiskReadAhead::Disk::used : DiskReadAhead::Disk::unused);
}

void DiskTier::seal(FreshHistory::Rest rest) {
  const SharedHistory* shared = encoder_.shared();
  if (!shared) return;
  for (Interval piece : fresh_.take(*shared, encoder_.ring()->size(), rest))
    begin_sealing(SealingSegment::Of::own, {.writer = sites_.own,
                                            .reader = sites_.twin,
                                            .epoch = epoch_,
                                            .first = piece.begin,
                                            .length = static_cast<std::uint32_t>(piece.size())});
}

void DiskTier::begin_sealing(SealingSegment::Of of, const SegmentName& name) {
  const dedup::HistoryRing* ring = decoder_.ring() ? decoder_.ring() : encoder_.ring();
  sealing_.add(of, name, ring->size());
}

// As much work as the blocks since the last call have earned.
void DiskTier::go_on_sealing() {
  go_on(sealing_.spend());
  answer_what_is_done();
}

void DiskTier::seal_all() {
  seal(FreshHistory::Rest::sealed);
  hurry_ = !sealing_.empty();
}

void DiskTier::go_on(std::size_t bytes) {
  while (auto done = sealing_.go_on({encoder_.ring(), decoder_.ring()}, bytes)) keep(std::move(*done));
}

void DiskTier::keep(SealingQueue::Done done) {
  auto& [of, sealed] = done;
  if (of == SealingSegment::Of::own)
    messages_.push_back(sealed_message(
        {.first = sealed.name.first, .length = sealed.name.length, .digest = sealed.name.digest}));
  // Refused segments are counted there.
  (void)store_.put(sealed.name, std::move(sealed.bytes), std::move(sealed.hooks));
}

void DiskTier::on_cleared() {
  fresh_.clear();
  sealing_.forget(SealingSegment::Of::own);
  ahead_.clear();
}

void DiskTier::on_quiet() {
  seal_all();
  if (sealing_.empty()) sealing_.release();
  ahead_.on_quiet();
}

}  // namespace longhaul::reduction
