// SPDX-License-Identifier: Apache-2.0
// One side of the session between two proxies: many streams over carriers that may be replaced at any byte.
// Bytes and time in; frames, deadlines and events out; no sockets, no clock. PROTOCOL.md is the contract with
// the other side.
#pragma once
#include <memory>
#include <optional>

#include "proxy/link/incoming.h"
#include "proxy/link/outgoing.h"

namespace longhaul::link {

struct SessionConfig {
  Side side = Side::dialler;
  std::uint32_t max_peer_streams = 16'384;   // live streams that the peer may have opened; more are reset
  std::chrono::seconds orphan_patience{60};  // how long streams live without a carrier
  config::Features allowed;                  // what this side allows for any flow
  std::vector<std::string> peer_features{};  // the names of the peer's HELLO
  // What the peer may make this side do in one turn of the loop (codecs/work.h). With a limit, the driver
  // says when a turn begins.
  std::uint64_t work_per_turn = WorkBudget::kUnlimited;
};

class Session final : private StreamOwner {
 public:
  // `pool` and `retained` are shared by all sessions of the daemon and outlive this one; so does `codec` (may
  // be null).
  Session(const SessionConfig& config, CreditPool& pool, RetainedBudget& retained, BlockCodec* codec,
          TimePoint now);
  ~Session() override;

  // ---- Carriers. One of them, the preferred one, carries all new data but for what helpers take; the others
  // only receive. `rtt` is that of the carrier's handshake, zero if unknown. A carrier that may not send yet
  // only receives, and does
  // not keep the session alive, until it is preferred.
  void attach(CarrierId carrier, TimePoint now, Duration rtt, bool may_send = true);
  // Data last sent on it and not acknowledged is sent again, on the preferred carrier: the newest of the rest
  // if it was this one.
  void detach(CarrierId carrier, TimePoint now);
  // Nothing is sent again: the carrier that was preferred still delivers.
  void prefer(CarrierId carrier, TimePoint now);
  CarrierId preferred() const { return carriers_.preferred(); }  // or kNoCarrier
  // What is sent elsewhere than on the preferred carrier. Nothing is sent again.
  void route(const PathRoutes& routes) { carriers_.route(routes); }
  // Bytes in, split anywhere. After an error the peer broke the protocol, and the session was abandoned.
  Result<void> receive(CarrierId carrier, Bytes bytes, TimePoint now);
  // For carriers that are not preferred.
  Questions& questions() { return liveness_.questions(); }
  // Frames out.
  Outgoing& outgoing() { return outgoing_; }
  const Outgoing& outgoing() const { return outgoing_; }

  // ---- Turns of the loop. Work beyond that of a turn waits for go_on(), in another turn
  // (State::has_work_left).
  // The driver begins each turn. Used up: Outgoing::transmit() writes no more than control frames.
  WorkBudget& work() { return context_.work; }
  // Also after the codec got results from elsewhere (a disk): blocks that waited for them may be decodable.
  // After an error the session was abandoned, as after receive().
  Result<void> go_on(TimePoint now);

  // ---- Time.
  std::optional<TimePoint> next_timeout() const;
  // This process did not run for so long, which is no silence of the peer. Call it before on_timeout().
  void on_stall(Duration stall, TimePoint now) { liveness_.leave_out(stall, now); }
  void on_timeout(TimePoint now);  // a call too early is harmless

  std::optional<Event> poll_event();

  // ---- Streams. A reference is valid until release(); null if the id is not live.
  Stream& open(OpenRequest request, TimePoint now);
  Stream* find(StreamId id) { return streams_.find(id); }
  void release(StreamId id) {
    lifetimes_.release(id);
  }  // the flow has finished with it; an incomplete one is reset
  // From the next block on, in both directions; the side that opened the stream decides.
  void change_features(StreamId id, const config::Features& features);

  void allow(const config::Features& features);
  // What the peer has said of itself.
  const Incoming& incoming() const { return incoming_; }

  // ---- The end. The session is over now: nothing is sent or received any more, and `expired` is an event.
  // end_streams() resets its streams and tells them, in portions, because there may be tens of thousands.
  void abandon(TimePoint now);
  // After abandon(): handles that many more of them. False: only those are left that flows have not released.
  bool end_streams(std::size_t most);

  const Liveness& liveness() const { return liveness_; }
  struct State {
    bool is_over = false;    // after abandon()
    bool is_silent = false;  // the peer does not answer now
    bool has_work_left = false;
    std::size_t live_streams = 0;
    std::uint64_t retained_bytes = 0;
  };
  State state() const;

 private:
  // StreamOwner
  void wants_to_send(StreamEntry& stream, const StreamOutput& output) override {
    outgoing_.wants_to_send(stream, output, Outgoing::Turn::last);
  }
  void tell(StreamEntry& stream, EventKind kind) override { events_.tell(stream, kind); }
  void announce_credit(StreamEntry& stream) override { due_.credit(stream); }
  void announce_reset(StreamEntry& stream) override { due_.reset(stream); }
  Result<void> take_open_credit(std::uint64_t bytes) override { return open_credit_.take(bytes); }
  bool admits(StreamEntry& opened) override { return lifetimes_.admits(opened); }
  void reads_later(StreamEntry& stream) override { incoming_.reads_later(stream); }
  std::uint64_t waiting_allowance() const override;

  void send_on(SessionCarriers::Carrier& carrier, Duration rtt);
  void hear(TimePoint now);
  void say_everything_again();
  void visit_streams();
  bool has_carrier() const { return carriers_.preferred() != kNoCarrier; }
  bool busy() const { return !streams_.empty(); }

  SessionConfig config_;
  StreamContext context_;
  SessionCarriers carriers_;
  Liveness liveness_;
  OpenCredit open_credit_;
  StreamTable streams_;
  SessionEvents events_;
  DueFrames due_;
  StreamLifetimes lifetimes_;
  Incoming incoming_;
  ControlStream control_;
  Outgoing outgoing_;

  bool carrier_lost_ = false;  // since the round of streams for carriers began
  std::optional<TimePoint> orphaned_since_;
  TimePoint next_memory_round_;
  bool silent_ = false;
  bool over_ = false;
};

}  // namespace longhaul::link
