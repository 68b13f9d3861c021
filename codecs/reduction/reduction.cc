// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/reduction.h"

#include "codecs/reduction/block_decoder.h"
#include "codecs/reduction/block_encoder.h"

namespace longhaul::reduction {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

}  // namespace

Reduction::Reduction(const Options& options)
    : encoder_(std::make_unique<BlockEncoder>(options.ring_bytes, options.epoch)),
      decoder_(std::make_unique<BlockDecoder>(options.peer_ring_bytes)) {}

Reduction::~Reduction() = default;

std::optional<BlockHeader> Reduction::encode(std::uint64_t stream, const ReductionStages& stages, Bytes plain,
                                             Buffer& out) {
  return encoder_->encode(stream, stages, plain, out);
}

Result<std::optional<Slice>> Reduction::decode(std::uint64_t stream, const BlockHeader& header,
                                               Bytes encoded) {
  return decoder_->decode(stream, header, encoded);
}

std::optional<std::uint64_t> Reduction::poll_ready() { return decoder_->poll_ready(); }

void Reduction::forget(std::uint64_t stream) {
  encoder_->forget(stream);
  decoder_->forget(stream);
}

Result<void> Reduction::on_message(Bytes bytes) {
  auto message = parse_message(bytes);
  if (!message) return message.error();
  return std::visit(Overloaded{[&](const Hello& m) { return decoder_->on_hello(m); },
                               [&](const PlainBlock& m) { return decoder_->on_plain(m); },
                               [&](const Gone& m) { return decoder_->on_gone(m); },
                               [&](const Floor& m) { return decoder_->on_floor(m); },
                               [&](const Welcome& m) { return encoder_->on_welcome(m); },
                               [&](const Held& m) { return encoder_->on_held(m); },
                               [&](const Need& m) { return encoder_->on_need(m); },
                               [&](const Clear&) {
                                 encoder_->clear();
                                 return Result<void>{};
                               },
                               [&](const OtherMessage&) { return Result<void>{}; }},
                    *message);
}

bool Reduction::has_message() const { return encoder_->has_message() || decoder_->has_message(); }

std::optional<Slice> Reduction::poll_message() {
  auto message = encoder_->poll_message();
  return message ? message : decoder_->poll_message();
}

void Reduction::set_line_rate(std::uint64_t bytes_per_second) { encoder_->set_line_rate(bytes_per_second); }

void Reduction::clear() {
  encoder_->clear();
  decoder_->ask_to_clear();
}

Counters Reduction::counters() const { return {encoder_->counters(), decoder_->counters()}; }
const BlockFigures& Reduction::last_encoded() const { return encoder_->last(); }
const BlockFigures& Reduction::last_decoded() const { return decoder_->last(); }

}  // namespace longhaul::reduction
