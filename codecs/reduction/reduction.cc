// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/reduction.h"

#include "codecs/reduction/block_decoder.h"
#include "codecs/reduction/block_encoder.h"
#include "codecs/reduction/disk_tier.h"
#include "codecs/reduction/errors.h"
#include "codecs/work.h"

namespace longhaul::reduction {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;  // clang 14 requires it

}  // namespace

Reduction::Reduction(const Options& options)
    : encoder_(std::make_unique<BlockEncoder>(options.ring_bytes, options.epoch, options.checksum)),
      decoder_(std::make_unique<BlockDecoder>(options.peer_ring_bytes, options.checksum)) {
  if (options.store)
    disk_ = std::make_unique<DiskTier>(*options.store, DiskTier::Sites{options.site, options.twin_site},
                                       options.rights, options.epoch, *encoder_, *decoder_);
}

Reduction::~Reduction() = default;

std::optional<BlockHeader> Reduction::encode(std::uint64_t stream, const ReductionStages& stages, Bytes plain,
                                             Buffer& out) {
  if (disk_) disk_->before_encoding(stream, stages);
  auto header = encoder_->encode(stream, stages, plain, out);
  if (header && disk_) {
    disk_->on_encoded(stream, stages, *header);
    disk_->on_block(plain.size());
  }
  return header;
}

Result<std::optional<Slice>> Reduction::decode(std::uint64_t stream, const BlockHeader& header,
                                               Bytes encoded) {
  if (header.codec & kLoads) {
    if (!disk_) return Error::malformed_block;
    auto brought = disk_->loads().bring(stream, header, encoded);
    if (!brought) return brought.error();
    if (*brought == TwinLoads::Brought::waits) return std::nullopt;
  }
  auto plain = decoder_->decode(stream, header, encoded);
  // Otherwise decoding is tried again, and then needs no disk.
  if (disk_ && (header.codec & kLoads) && (!plain || *plain)) disk_->loads().forget(stream);
  if (disk_) disk_->on_block(header.plain_bytes);
  return plain;
}

std::optional<std::uint64_t> Reduction::poll_ready() {
  auto stream = disk_ ? disk_->loads().poll_ready() : std::nullopt;
  return stream ? stream : decoder_->poll_ready();
}

void Reduction::forget(std::uint64_t stream) {
  encoder_->forget(stream);
  decoder_->forget(stream);
  if (disk_) disk_->forget(stream);
}

void Reduction::stop_encoding(std::uint64_t stream) {
  encoder_->forget(stream);
  if (disk_) disk_->forget_sending(stream);
}

Result<void> Reduction::on_message(Bytes bytes) {
  constexpr std::uint64_t kWorkPerMessage = 500;  // in addition to its bytes
  count_work(kWorkPerMessage + bytes.size());
  auto message = parse_message(bytes);
  if (!message) return message.error();
  return std::visit(
      Overloaded{[&](const Hello& m) {
                   if (disk_) disk_->on_twin_epoch(m.epoch);
                   return decoder_->on_hello(m);
                 },
                 [&](const PlainBlock& m) { return decoder_->on_plain(m); },
                 [&](const Gone& m) { return decoder_->on_gone(m); },
                 [&](const Floor& m) { return decoder_->on_floor(m); },
                 [&](const Welcome& m) { return encoder_->on_welcome(m); },
                 [&](const Held& m) {
                   auto held = encoder_->on_held(m);
                   if (held && disk_) disk_->on_held();
                   return held;
                 },
                 [&](const Need& m) { return encoder_->on_need(m); },
                 [&](const Clear&) {
                   encoder_->clear(BlockEncoder::ClearedBy::twin);
                   if (disk_) disk_->on_cleared();
                   return Result<void>{};
                 },
                 [&](const OtherMessage& m) { return disk_ ? disk_->on_message(m) : Result<void>{}; }},
      *message);
}

bool Reduction::has_message() const {
  return encoder_->has_message() || decoder_->has_message() || (disk_ && disk_->has_message());
}

std::optional<Slice> Reduction::poll_message() {
  auto message = encoder_->poll_message();
  if (!message && disk_) message = disk_->poll_urgent();
  if (!message) message = decoder_->poll_message();
  return message || !disk_ ? message : disk_->poll_message();
}

void Reduction::set_line_rate(std::uint64_t bytes_per_second) {
  encoder_->compression().set_line_rate(bytes_per_second);
}

void Reduction::clear() {
  encoder_->clear(BlockEncoder::ClearedBy::owner);
  decoder_->ask_to_clear();
  if (disk_) disk_->forget_both();
}

std::optional<std::uint64_t> Reduction::cleared_by_twin() const {
  return disk_ ? disk_->forgotten_by_twin() : std::optional<std::uint64_t>(0);
}

void Reduction::on_quiet() {
  if (disk_) disk_->on_quiet();
  if (auto* ring = encoder_->ring()) ring->on_quiet();
  const std::uint64_t decoded = decoder_->counters().blocks;
  const bool quiet = std::exchange(decoded_at_last_quiet_, decoded) == decoded;
  if (auto* ring = decoder_->ring(); ring && quiet) ring->on_quiet();
}

void Reduction::finish() {
  if (disk_) disk_->finish();
}

bool Reduction::finished() const { return !disk_ || disk_->finished(); }

void Reduction::set_rights(SegmentRights rights) {
  if (disk_) disk_->set_rights(std::move(rights));
}

bool Reduction::has_work() const { return disk_ && disk_->has_work(); }

void Reduction::work() {
  if (disk_) disk_->work();
}

void Reduction::set_relief(unsigned steps) { encoder_->compression().set_relief(steps); }

Counters Reduction::counters() const {
  return {encoder_->counters(), decoder_->counters(), disk_ ? disk_->common_segments() : 0};
}

std::uint64_t Reduction::memory_bytes() const {
  return encoder_->counters().ring_filled_bytes + encoder_->index_bytes() +
         decoder_->counters().ring_filled_bytes + (disk_ ? disk_->memory_bytes() : 0);
}
const BlockFigures& Reduction::last_encoded() const { return encoder_->last(); }
const BlockFigures& Reduction::last_decoded() const { return decoder_->last(); }

}  // namespace longhaul::reduction
