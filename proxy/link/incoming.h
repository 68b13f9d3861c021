// SPDX-License-Identifier: Apache-2.0
// Handles the peer's frames and the records of its control stream. Work beyond one turn's limit waits for
// go_on(). outgoing.h is the other direction.
#pragma once
#include <deque>

#include "proxy/link/frame_assembler.h"
#include "proxy/link/session_events.h"
#include "proxy/link/stream_lifetimes.h"

namespace longhaul::link {

class Incoming final : private RecordSink {
 public:
  // All references outlive this object. `control` passes its records to reader().
  Incoming(StreamContext& context, StreamTable& streams, StreamLifetimes& lifetimes, ControlStream& control,
           OpenCredit& open_credit, DueFrames& due, Liveness& liveness, SessionEvents& events)
      : context_(context),
        streams_(streams),
        lifetimes_(lifetimes),
        control_(control),
        open_credit_(open_credit),
        due_(due),
        liveness_(liveness),
        events_(events) {
    peer_allowed_.modules = context.keys.standard();
  }
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;
  RecordSink& reader() { return *this; }

  // Takes bytes of a carrier. An error means that the peer broke the protocol, and streams may have lost
  // acknowledged bytes.
  Result<void> feed(FrameAssembler& assembler, Bytes bytes);
  // Reads what another turn has left, and blocks that can be decoded now.
  Result<void> go_on();
  bool has_work_left() const { return !reads_later_.empty() || control_.has_unread() || codec_waits_; }
  void reads_later(StreamEntry& stream);

  // The peer's own statements.
  const config::Features& peer_allowed() const { return peer_allowed_; }
  const CloseFrame& close_reason() const { return close_reason_; }

 private:
  // RecordSink, for the control stream.
  Result<void> on_data(Bytes) override { return LinkError::malformed_record; }
  Result<void> on_record(RecordType type, Bytes body) override;
  bool waits() const override { return context_.work.used_up(); }

  Result<void> on_frame(const Frame& frame);
  Result<void> on_stream_frame(const StreamFrame& frame);
  void on_ack(const AckFrame& frame);
  void on_credit(const CreditFrame& frame);
  Result<void> on_reset(const ResetFrame& frame);
  Result<void> read_streams();
  Result<void> resume_blocks();

  StreamContext& context_;
  StreamTable& streams_;
  StreamLifetimes& lifetimes_;
  ControlStream& control_;
  OpenCredit& open_credit_;
  DueFrames& due_;
  Liveness& liveness_;
  SessionEvents& events_;

  std::deque<StreamId> reads_later_;  // streams with work for another turn
  bool codec_waits_ = false;          // the codec may name more streams
  config::Features peer_allowed_;
  CloseFrame close_reason_{};
};

}  // namespace longhaul::link
