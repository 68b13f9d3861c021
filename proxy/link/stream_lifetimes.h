// SPDX-License-Identifier: Apache-2.0
// When the streams of a session begin and end: opened by either side, within the limits of the peer and of
// memory, and forgotten once flow and peer have finished. stream_table.h finds them; outgoing.h and
// incoming.h move their bytes.
#pragma once
#include "proxy/link/due_frames.h"
#include "proxy/link/open_credit.h"
#include "proxy/link/peer_streams.h"
#include "proxy/link/stream_table.h"

namespace longhaul::link {

class StreamLifetimes {
 public:
  // All references outlive this object. `most`: limit of live streams opened by the peer; more are reset.
  StreamLifetimes(StreamContext& context, StreamTable& streams, OpenCredit& open_credit, DueFrames& due,
                  Side side, std::uint32_t most)
      : context_(context),
        streams_(streams),
        open_credit_(open_credit),
        due_(due),
        next_id_(side == Side::dialler ? 1u : 2u),
        peer_streams_(side, most) {}

  // ---- Streams that this side opens.
  Stream& open(OpenRequest request);
  // The flow no longer uses the stream; an incomplete one is reset.
  void release(StreamId id);
  // Erases the stream if it is no longer needed.
  void forget_if_finished(StreamId id);
  // The session is over: nothing more is sent to the peer.
  void session_is_over() { over_ = true; }

  // ---- Streams that the peer opens.
  // The state of an id that is not live: whether it has ended, or may begin now.
  enum class Unknown : std::uint8_t { never_opened, ended, begins };
  Unknown judge(StreamId id) const;
  Result<Stream*> admit(StreamId id);
  // A part of the stream's OPEN has arrived.
  void open_begins(StreamEntry& stream);
  // The stream's OPEN was read. Returns whether the stream may live.
  bool admits(StreamEntry& opened);
  // Limits that an honest peer does not exceed.
  bool too_many_unopened() const { return peer_streams_.too_many_unopened(); }
  bool too_many_gaps() const { return peer_streams_.too_many_gaps(); }

  // Grants credit for streams that the peer opens.
  void grant_open_credit();

 private:
  StreamContext& context_;
  StreamTable& streams_;
  OpenCredit& open_credit_;
  DueFrames& due_;
  StreamId next_id_;
  PeerStreams peer_streams_;
  bool over_ = false;
};

}  // namespace longhaul::link
