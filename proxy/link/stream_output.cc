// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream_output.h"

#include <algorithm>
#include <utility>

#include "proxy/link/record_parser.h"

namespace longhaul::link {
namespace {

// A plain record up to this size is copied into one slice with its head.
constexpr std::size_t kCopiedPlain = 1024;

}  // namespace

void StreamOutput::use(const config::Features& features) {
  stages_ = {.dedup_memory = features.dedup_memory,
             .dedup_disk = features.dedup_disk,
             .compression = features.compression};
}

void StreamOutput::write(Bytes plain, bool isolated) {
  context_.retained.add(plain.size());
  pending_.write(plain, isolated);
}

void StreamOutput::write(Slice plain, bool isolated) {
  context_.retained.add(plain.size());
  pending_.write(std::move(plain), isolated);
}

ReductionStages StreamOutput::front_stages() const {
  ReductionStages stages = stages_;
  if (pending_.front_is_isolated()) stages.dedup_memory = stages.dedup_disk = false;
  return stages;
}

// If blocks are made, each record waits for the blocks of the bytes before it.
void StreamOutput::append(Slice wire) {
  if (pending_.empty()) return keep(std::move(wire));
  context_.retained.add(wire.size());
  pending_.write_record(std::move(wire));
}

void StreamOutput::keep(Slice wire) {
  context_.retained.add(wire.size());
  sending_.append(std::move(wire));
}

std::uint64_t StreamOutput::room() const {
  const std::size_t unsent = unsent_bytes(), limit = unsent_limit();
  return std::min<std::uint64_t>(unsent < limit ? limit - unsent : 0,
                                 context_.retained.allowance(retained_bytes()));
}

// If blocks shrink to almost nothing, enough may wait to fill a packet or two of a slow line.
std::size_t StreamOutput::unsent_limit() const {
  if (!makes_blocks()) return context_.unsent_limit;
  constexpr std::size_t kMostTimes = 8, kMostForPackets = 1 << 20;
  const std::size_t least = context_.unsent_limit + kMaxBlockPlainBytes;
  return std::max(least,
                  std::min(least * std::clamp<std::size_t>(shrinks_ / 4, 1, kMostTimes), kMostForPackets));
}

bool StreamOutput::prepare_to_send(std::size_t room) {
  while (!pending_.empty() &&
         (!sending_.wants_to_send() || (!sending_.repeats() && sending_.unsent_bytes() < room))) {
    const bool first = pending_.was_quiet();
    encode_next();
    if (first && !pending_.empty()) return true;
  }
  return false;
}

void StreamOutput::encode_all() {
  while (!pending_.empty()) encode_next();
}

void StreamOutput::encode_next() {
  // The line's capacity in that time, if these bytes shrink like the previous ones.
  const std::size_t first =
      std::min<std::size_t>(context_.first_block_bytes, kMaxBlockPlainBytes) * std::max(shrinks_, 1u);
  const std::size_t size = pending_.next_block(first);
  if (size > 0) {
    pending_.on_block(size);
    Bytes plain;
    std::optional<Slice> block;
    if (const ReductionStages stages = front_stages(); reduces(stages)) {
      plain = pending_.front(size);
      block = blocks_.encode(stages, plain);
    }
    if (block) {
      shrinks_ = static_cast<std::uint32_t>(size / block->size());
      context_.retained.remove(size);
      pending_.drop(size);
      keep(std::move(*block));
    } else {
      shrinks_ = 1;
      send_plain(size, plain);
    }
  }
  while (auto record = pending_.take_record()) sending_.append(std::move(*record));  // is counted already
}

// As one DATA record, whose bytes are not copied if there are many. `gathered`: the bytes in one piece, or
// nothing.
void StreamOutput::send_plain(std::size_t bytes, Bytes gathered) {
  Buffer head;
  write_record_head(RecordType::data, bytes, head);
  if (bytes <= kCopiedPlain) {
    keep(Slice::joined(head, gathered.empty() ? pending_.front(bytes) : gathered));
    pending_.drop(bytes);
    return context_.retained.remove(bytes);
  }
  keep(Slice::copy_of(head));
  while (bytes > 0) {
    Slice piece = pending_.take(bytes);
    bytes -= piece.size();
    sending_.append(std::move(piece));  // is counted already
  }
}

void StreamOutput::drop() {
  context_.retained.remove(sending_.clear() + pending_.size());
  pending_.clear();
}

std::optional<Buffer> StreamOutput::take_back(StreamOffset offset) {
  if (sending_.ever_sent() > offset) return std::nullopt;
  // Blocks, which the codec would have to decode again, and messages, which only a module's twin can
  // interpret, are made when there is room to send them: they stay here for a moment at most.
  struct Written final : RecordSink {
    Result<void> on_data(Bytes bytes) override {
      longhaul::append(plain, bytes);
      return {};
    }
    Result<void> on_record(RecordType, Bytes) override {
      only_data = false;
      return {};
    }
    Buffer plain;
    bool only_data = true;
  } written;
  RecordParser parser;
  sending_.visit({offset, sending_.end_offset()}, [&](Bytes piece) {
    if (auto read = parser.feed(piece, written); !read) written.only_data = false;
  });
  if (!written.only_data || pending_.has_records()) return std::nullopt;
  while (!pending_.empty()) {
    const Slice piece = pending_.take(pending_.size());
    context_.retained.remove(piece.size());
    longhaul::append(written.plain, piece.bytes());
  }
  return std::move(written.plain);
}

}  // namespace longhaul::link
