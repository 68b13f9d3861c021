// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/stream_lifetimes.h"

#include <utility>

namespace longhaul::link {

Stream& StreamLifetimes::open(OpenRequest request) {
  const auto [credit, from_open_credit] = open_credit_.take_first(request.features.window_bytes);
  const StreamId id = next_id_;
  next_id_ = StreamId(id.number() + 2);
  return streams_.add(std::make_unique<Stream>(id, context_, std::move(request), credit, from_open_credit));
}

void StreamLifetimes::release(StreamId id) {
  Stream* stream = streams_.find(id);
  if (!stream) return;
  stream->entry().released = true;
  if (!over_ && !stream->may_finish()) stream->reset(ResetCode::aborted);
  forget_if_finished(id);
}

void StreamLifetimes::forget_if_finished(StreamId id) {
  const Stream* stream = streams_.find(id);
  if (!stream || !stream->entry().released) return;
  if (over_) return streams_.erase(id);
  if (!stream->finished()) return;
  // Bytes behind a gap are useless now. The peer need not send them again, and will not: its carrier knows
  // that they arrived.
  const StreamOffset seen = stream->reader().wire_seen();
  const bool waits = seen > stream->reader().wire_received();
  if (stream->entry().ack_due || waits) due_.ack_again(id, seen);
  if (waits) due_.acks_by(context_.now);
  if (seen > StreamOffset()) due_.remember_last_ack(id, seen);
  if (stream->entry().unopened) peer_streams_.open_is_read();
  if (peer_streams_.opens(id)) peer_streams_.end(id);
  streams_.erase(id);
}

StreamLifetimes::Unknown StreamLifetimes::judge(StreamId id) const {
  if (peer_streams_.opens(id)) return peer_streams_.ended(id) ? Unknown::ended : Unknown::begins;
  return id >= next_id_ ? Unknown::never_opened : Unknown::ended;
}

Result<Stream*> StreamLifetimes::admit(StreamId id) {
  if (!peer_streams_.begin()) return LinkError::too_many_streams;
  // Streams without credit have not begun, or have ended without the peer's confirmation: the limits of flows
  // and of credit do not bound them.
  constexpr std::uint64_t kStreamCost = 1024;
  if ((streams_.size() - context_.credit.streams) * kStreamCost > context_.pool.cap_bytes())
    return LinkError::too_many_streams;
  return &streams_.add(std::make_unique<Stream>(id, context_));
}

void StreamLifetimes::open_begins(StreamEntry& stream) {
  stream.unopened = true;
  peer_streams_.open_begins();
}

bool StreamLifetimes::admits(StreamEntry& opened) {
  if (std::exchange(opened.unopened, false)) peer_streams_.open_is_read();
  return peer_streams_.within_limit() && !context_.pool.full();
}

void StreamLifetimes::grant_open_credit() {
  if (open_credit_.grant(streams_.empty() ? OpenCredit::Traffic::none : OpenCredit::Traffic::some))
    due_.open_credit();
}

}  // namespace longhaul::link
