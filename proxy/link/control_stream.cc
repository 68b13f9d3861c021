// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/control_stream.h"

namespace longhaul::link {
namespace {

// Limit of bytes that wait for a gap to close, or for another turn.
constexpr std::uint64_t kMaxControlAhead = 4 << 20;
// The codec retains its further messages while this much is unacknowledged; below the amount that a receiver
// accepts after a gap.
constexpr std::size_t kMaxControlKept = 512 * 1024;
// Limit of this side's messages that the peer causes.
constexpr std::uint64_t kMaxControlUnacknowledged = 32 << 20;

}  // namespace

void ControlStream::write(RecordType type, Bytes body) {
  Buffer head;
  write_record_head(type, body.size(), head);
  Slice wire = Slice::joined(head, body);
  context_.retained.add(wire.size());
  sending_.append(std::move(wire));
}

bool ControlStream::overflows() const { return sending_.retained_bytes() > kMaxControlUnacknowledged; }

Result<void> ControlStream::on_frame(const StreamFrame& frame) {
  const std::uint64_t ahead = receiving_.waiting_cost() + unread_.size();
  const std::uint64_t room = kMaxControlAhead - std::min(kMaxControlAhead, ahead);
  auto taken = receiving_.insert(frame.offset, frame.payload, room, [&](Bytes fresh) -> Result<void> {
    if (unread_.empty()) {
      auto rest = read(fresh);
      if (!rest) return rest.error();
      fresh = *rest;
    }
    unread_.push_copy(fresh);
    return {};
  });
  if (!taken) return taken.error() == LinkError::too_fragmented ? LinkError::control_overflow : taken.error();
  if (unread_.size() > kMaxControlAhead) return LinkError::control_overflow;
  return {};
}

Result<void> ControlStream::read_on() {
  while (!context_.work.used_up() && !unread_.empty()) {
    const Slice piece = unread_.front();
    auto rest = read(piece.bytes());
    if (!rest) return rest.error();
    unread_.drop_until(unread_.begin_offset() + piece.size() - rest->size());
  }
  return {};
}

bool ControlStream::codec_has_message() const {
  return context_.codec && sending_.retained_bytes() < kMaxControlKept && context_.codec->has_message();
}

void ControlStream::poll_codec() {
  codec_at_.reset();
  while (context_.codec && sending_.retained_bytes() < kMaxControlKept) {
    auto message = context_.codec->poll_message();
    if (!message) break;
    write(RecordType::dictionary, message->bytes());
  }
}

}  // namespace longhaul::link
