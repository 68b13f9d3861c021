// SPDX-License-Identifier: Apache-2.0
// Pending control information: acknowledgements, credit, resets, pongs. Each is sent once however often it
// becomes due, with its values at the time of writing, and is not retained.
#pragma once
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "codecs/keyed_hash.h"
#include "proxy/link/ack_timer.h"
#include "proxy/link/control_stream.h"
#include "proxy/link/liveness.h"
#include "proxy/link/open_credit.h"
#include "proxy/link/stream_table.h"

namespace longhaul::link {

class DueFrames {
 public:
  DueFrames(StreamContext& context, StreamTable& streams, const ControlStream& control,
            const OpenCredit& open_credit, Liveness& liveness)
      : context_(context),
        streams_(streams),
        control_(control),
        open_credit_(open_credit),
        liveness_(liveness) {}

  // ---- What is due.
  void ack(StreamEntry& stream);
  // For a stream that no longer exists here: the peer retransmits because the last ACK was lost.
  void ack_again(StreamId gone, StreamOffset offset);
  void control_ack() { control_ack_ = true; }
  // The last ACK of a forgotten stream. It is sent again when a carrier is lost, because one side learns of
  // the loss later than the other and may have sent the ACK on the dead carrier.
  void remember_last_ack(StreamId stream, StreamOffset offset);
  bool repeat_last_acks();
  void credit(StreamEntry& stream);
  void credit_return(StreamEntry& stream);
  void open_credit() { open_credit_due_ = true; }
  void reset(StreamEntry& stream);
  void reset_done(StreamId stream) { reset_done_.insert(stream); }
  void pong(std::uint64_t number) {  // only the latest ping needs an answer
    if (Questions::is_question(number))
      liveness_.questions().on_asked(number);
    else
      pongs_.assign(1, number);
  }
  // Whether the peer exceeds the limit that bounds memory here while the peer reads nothing.
  bool too_many() const { return repeated_acks_.size() > kMax || reset_done_.size() > kMax; }

  // ACKs are written at that time at the latest.
  void acks_by(TimePoint at) { ack_timer_.due(at, context_.now); }
  Duration ack_delay() const { return ack_timer_.delay(liveness_.smoothed_rtt()); }
  AckTimer& ack_timer() { return ack_timer_; }
  const AckTimer& ack_timer() const { return ack_timer_; }

  // ---- Writing.
  // Whether anything other than ACKs is due; ACKs may wait for their timer.
  bool urgent() const;
  bool any() const { return urgent() || acks_left() || ack_timer_.pending(); }
  // Writes whole frames, a few kilobytes at most; call again while any().
  void write(Buffer& out);

 private:
  static constexpr std::size_t kMax = 262'144;
  static constexpr std::size_t kMaxLastAcks = 1024;

  bool acks_left() const { return control_ack_ || !acks_.empty() || !repeated_acks_.empty(); }
  void write_resets(Buffer& out);
  void write_credit(Buffer& out);
  void write_acks(Buffer& out);

  StreamContext& context_;
  StreamTable& streams_;
  const ControlStream& control_;
  const OpenCredit& open_credit_;
  Liveness& liveness_;

  AckTimer ack_timer_;
  std::deque<StreamId> acks_, credits_, resets_, returns_;
  KeyedMap<StreamId, StreamOffset> repeated_acks_;
  std::deque<std::pair<StreamId, StreamOffset>> last_acks_;
  KeyedSet<StreamId> reset_done_;
  std::vector<std::uint64_t> pongs_;
  bool open_credit_due_ = false, control_ack_ = false;
};

}  // namespace longhaul::link
