// SPDX-License-Identifier: Apache-2.0
// When the streams of a session begin and end: opened by either side, within the limits of the peer and of
// memory, and forgotten once flow and peer have finished with them. The table finds them; outgoing.h and
// incoming.h move their bytes.
#pragma once
#include "proxy/link/due_frames.h"
#include "proxy/link/open_credit.h"
#include "proxy/link/peer_streams.h"
#include "proxy/link/stream_table.h"

namespace longhaul::link {

class StreamLifetimes {
 public:
  // Everything outlives this object. `most`: live streams that the peer may have opened; more are reset.
  StreamLifetimes(StreamContext& context, StreamTable& streams, OpenCredit& open_credit, DueFrames& due,
                  Side side, std::uint32_t most)
      : context_(context),
        streams_(streams),
        open_credit_(open_credit),
        due_(due),
        next_id_(side == Side::dialler ? 1u : 2u),
        peer_streams_(side, most) {}

  // ---- By this side.
  Stream& open(OpenRequest request);
  // The flow has finished with it; an incomplete one is reset.
  void release(StreamId id);
  // Erases it, if nobody needs it any more.
  void forget_if_finished(StreamId id);
  // The session is over: nothing is said to the peer any more.
  void session_is_over() { over_ = true; }

  // ---- By the peer.
  // A stream that is not live: was it, or may it begin now?
  enum class Unknown : std::uint8_t { never_opened, ended, begins };
  Unknown judge(StreamId id) const;
  Result<Stream*> admit(StreamId id);
  // A part of its OPEN has arrived.
  void open_begins(StreamEntry& stream);
  // Its OPEN is read: may it live?
  bool admits(StreamEntry& opened);
  // What no honest peer does.
  bool too_many_unopened() const { return peer_streams_.too_many_unopened(); }
  bool too_many_gaps() const { return peer_streams_.too_many_gaps(); }

  // Credit that the peer may use for streams that it opens.
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
