// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream_input.h"

#include <utility>

namespace longhaul::link {

Result<std::optional<Duration>> StreamInput::take(StreamOffset offset, Bytes wire, TimePoint now,
                                                  RecordSink& records) {
  // How much credit a stream's wire bytes use is not known before they are parsed, so waiting bytes are
  // bounded for all streams together: no honest peer sends more ahead than its credit.
  const std::uint64_t most = context_.owner.waiting_allowance(), before = receiving_.waiting_cost();
  const StreamOffset in_order = receiving_.contiguous();
  const std::uint64_t room = most > context_.waiting_cost ? most - context_.waiting_cost : 0;
  const auto taken = receiving_.insert(offset, wire, room, [&](Bytes fresh) -> Result<void> {
    // The rest of a stream that is no longer read is acknowledged and dropped.
    if (discards_) return {};
    if (!parked_) {
      auto rest = parser_.feed(fresh, records);
      if (!rest) return rest.error();
      fresh = *rest;
    }
    park(fresh);
    return {};
  });
  count_waiting();
  if (!taken) return taken.error();
  if (context_.waiting_cost > most) return LinkError::too_fragmented;
  const bool moved = receiving_.contiguous() != in_order;
  std::optional<Duration> stall;
  if (before && moved) stall = now - stalled_since_;
  if (receiving_.waiting_cost() && (moved || !before)) stalled_since_ = now;
  return stall;
}

// Like bytes after a gap: it is not known yet how much credit they use.
void StreamInput::park(Bytes wire) {
  if (wire.empty() || discards_) return;
  if (!parked_) parked_ = std::make_unique<Parked>();
  parked_->behind.push_copy(wire);
}

void StreamInput::wait_for(Bytes block) {
  if (!parked_) parked_ = std::make_unique<Parked>();
  parked_->block = Slice::copy_of(block);
}

Result<void> StreamInput::read_on(RecordSink& records) {
  Result<void> result;
  while (parked_ && !records.waits() && !parked_->behind.empty()) {
    const Slice piece = parked_->behind.front();
    auto rest = parser_.feed(piece.bytes(), records);
    if (!rest) {
      result = rest.error();
      break;
    }
    // If the stream is no longer read, nothing is parked.
    if (parked_) parked_->behind.drop_until(parked_->behind.begin_offset() + piece.size() - rest->size());
  }
  if (has_unread() && parked_->behind.empty()) parked_.reset();
  count_waiting();
  return result;
}

void StreamInput::discard() {
  parked_.reset();
  receiving_.stop_keeping();
  parser_ = {};
  discards_ = true;
  count_waiting();
}

void StreamInput::count_waiting() {
  std::uint64_t waiting = receiving_.waiting_cost() + parser_.held_bytes();
  if (parked_) waiting += parked_->block.size() + parked_->behind.size();
  context_.waiting_cost += waiting - std::exchange(counted_, waiting);
}

}  // namespace longhaul::link
