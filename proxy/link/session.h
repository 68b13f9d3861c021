// SPDX-License-Identifier: Apache-2.0
// One side of the session between two proxies: many streams over carriers that may be replaced at any byte.
// Bytes and time in, frames, deadlines and events out; no sockets, no clock. PROTOCOL.md is the contract with
// the other side.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "codecs/interval_tree.h"
#include "codecs/keyed_hash.h"
#include "proxy/link/frame_assembler.h"
#include "proxy/link/frame_batch.h"
#include "proxy/link/liveness.h"
#include "proxy/link/stream.h"

namespace longhaul::link {

struct SessionConfig {
  Side side = Side::dialler;
  std::uint32_t max_peer_streams = 16'384;   // live streams that the peer may have opened; more are reset
  std::chrono::seconds orphan_patience{60};  // how long streams live without a carrier
  config::Features allowed;                  // what this side allows for any flow
  // What the peer may make this side do in one turn of the loop (codecs/work.h). With a bound, the driver
  // says when a turn begins.
  std::uint64_t work_per_turn = WorkBudget::kUnlimited;
};

// What of the session went into one packet, so that it can go again.
struct PacketContent {
  struct Range {
    StreamId stream;
    Interval bytes;
  };
  std::vector<Range> ranges;  // of streams: the session has the bytes
  Buffer control;             // other frames; to repeat them is harmless (PROTOCOL.md, section 3)

  bool empty() const { return ranges.empty() && control.empty(); }
  void clear() {
    ranges.clear();
    control.clear();
  }
};

struct Event {
  enum class Kind : std::uint8_t {
    stream,        // `stream` and `stream_event` say more
    peer_allows,   // Session::peer_allowed() changed
    path_silent,   // nothing is received; new flows should bypass the link
    path_alive,    // heard again
    peer_closing,  // the peer said CLOSE; Session::close_reason() says why
    expired,       // the session is over: the peer broke the protocol, or no carrier was there for too long
  } kind = Kind::stream;
  StreamId stream = 0;
  EventKind stream_event = EventKind::readable;
};

class Session final : private StreamOwner {
 public:
  // `pool` and `retained` are shared by all sessions of the daemon and outlive this one; so does `codec` (may
  // be null).
  Session(const SessionConfig& config, CreditPool& pool, RetainedBudget& retained, BlockCodec* codec,
          TimePoint now);
  ~Session() override;

  // ---- Carriers. One of them, the preferred, carries all that is new; the others only bring. `rtt` is what
  // the carrier's handshake took, zero if unknown. One that may not send yet only brings, and does not keep
  // the session alive, until it is preferred.
  void attach(CarrierId carrier, TimePoint now, Duration rtt, bool may_send = true);
  // What was sent on it last and is not acknowledged goes again, on the preferred carrier: the newest of
  // those left if it was this one.
  void detach(CarrierId carrier, TimePoint now);
  // Nothing goes again: the carrier that was preferred still delivers.
  void prefer(CarrierId carrier, TimePoint now);
  bool is_over() const { return over_; }  // see abandon()
  bool has_carrier() const { return preferred_ != 0; }
  CarrierId preferred() const { return preferred_; }  // 0: none
  // Bytes in, split anywhere. After an error the peer broke the protocol, and the session was abandoned.
  Result<void> receive(CarrierId carrier, Bytes bytes, TimePoint now);
  // Appends whole frames to `out`, about `budget` bytes; STREAM frames hold at most `chunk` bytes while
  // several streams wait, so that a small one need not wait behind a large one. Appends nothing when there is
  // nothing to send.
  void transmit(CarrierId carrier, std::size_t budget, std::size_t chunk, FrameBatch& out, TimePoint now);
  void transmit(CarrierId carrier, std::size_t budget, std::size_t chunk, Buffer& out, TimePoint now);
  bool wants_to_transmit(CarrierId carrier, TimePoint now) const;

  // ---- Turns of the loop. What came and was more than a turn's work waits for go_on(), in a turn of its
  // own.
  void begin_turn() { context_.work.begin_turn(); }
  bool has_work_left() const {
    return !over_ && (!reads_later_.empty() || !control_behind_.empty() || codec_waits_);
  }
  // The turn's work is done: transmit() writes no more than control frames.
  bool work_used_up() const { return context_.work.used_up(); }
  // Also after the codec was told something from elsewhere (a disk): blocks that waited for it may be
  // decodable. After an error the session was abandoned, as after receive().
  Result<void> go_on(TimePoint now);

  // ---- The same for carriers that lose packets.
  // Appends whole frames, never more than `room` bytes, and adds to `content` what on_lost() would need. May
  // append nothing where the next frame needs more room; in kMinPacketRoom there is room for any.
  enum class Streams : std::uint8_t { all, interactive };
  void fill(CarrierId carrier, std::size_t room, Streams which, Buffer& out, PacketContent& content,
            TimePoint now);
  static constexpr std::size_t kMinPacketRoom = 1100;
  // The packet did not arrive: what was in it goes again.
  void on_lost(CarrierId carrier, const PacketContent& content, TimePoint now);
  // It was taken for lost and has arrived after all.
  void on_arrived(const PacketContent& content);
  // Whose bytes fill() takes next: of what class, and with which features. Nothing: only control frames wait.
  struct NextStream {
    StreamClass stream_class;
    const config::Features& features;
  };
  std::optional<NextStream> next_stream();

  // ---- Time.
  std::optional<TimePoint> next_timeout() const;
  void on_timeout(TimePoint now);  // a call too early is harmless

  std::optional<Event> poll_event();

  // ---- Streams. A reference stays good until release(); nothing where the id is not live.
  Stream& open(OpenRequest request, TimePoint now);
  Stream* find(StreamId id);
  void release(StreamId id);  // the flow is done with it; one that is not complete is reset

  // From the next block on, in both directions; the side that opened the stream decides.
  void change_features(StreamId id, const config::Features& features);

  void allow(const config::Features& features);
  const config::Features& peer_allowed() const { return peer_allowed_; }

  const CloseFrame& close_reason() const { return close_reason_; }

  // The session is over now: nothing is sent or received any more, and `expired` is an event. Its streams are
  // reset, and told so, by end_streams(), for there may be tens of thousands.
  void abandon(TimePoint now);
  // After abandon(): so many more of them. False: none is left, but those that flows have not released.
  bool end_streams(std::size_t most);

  Duration smoothed_rtt() const { return liveness_.smoothed_rtt(); }
  const Contact& contact() const { return liveness_.contact(); }
  bool silent() const { return silent_; }
  bool overdue(TimePoint now) const { return liveness_.overdue(now); }
  std::size_t live_streams() const { return streams_.size(); }
  // Whether the peer has acknowledged all that the codec, and allow(), had to say.
  bool told_all() const { return control_sending_.all_acknowledged(); }
  // Wire bytes acknowledged by the peer since the start, for measuring the delivery rate.
  std::uint64_t acknowledged_bytes() const { return acknowledged_bytes_; }
  std::uint64_t retained_bytes() const;
  // What the carrier in use takes, bytes a second: how large blocks begin, and how much effort they are
  // worth.
  void set_line_rate(std::uint64_t bytes_per_second);
  std::uint64_t line_rate() const { return line_rate_; }  // 0: not told yet
  // What a stream may hold ready beyond what was sent; follows the delivery rate.
  void set_unsent_limit(std::size_t bytes) { context_.unsent_limit = bytes; }

 private:
  struct Carrier {
    CarrierId id;
    bool may_send;
    FrameAssembler assembler;
  };
  class ControlSink;
  using StreamMap = KeyedMap<StreamId, std::unique_ptr<Stream>>;

  // Whose turn comes next: a stream that had to wait for the next packet, or lost one, before the others.
  enum class Turn : std::uint8_t { first, last };

  // StreamOwner
  void wants_to_send(Stream& stream) override { wants_to_send(stream, Turn::last); }
  void wants_to_send(Stream& stream, Turn turn);
  void tell(Stream& stream, EventKind kind) override;
  void announce_credit(Stream& stream) override;
  void announce_reset(Stream& stream) override;
  Result<void> take_open_credit(std::uint64_t bytes) override;
  bool admits(Stream& opened) override;
  void reads_later(Stream& stream) override;
  std::uint64_t waiting_allowance() const override;

  Result<void> on_frame(const Frame& frame, TimePoint now);
  Result<void> on_stream_frame(const StreamFrame& frame, TimePoint now);
  Result<void> on_control_bytes(const StreamFrame& frame);
  Result<Bytes> read_control(Bytes wire);
  Result<void> do_work_left();
  void on_ack(const AckFrame& frame);
  void on_credit(const CreditFrame& frame);
  Result<void> on_reset(const ResetFrame& frame);
  Result<Stream*> admit(StreamId id);
  void acks_due(TimePoint at);
  void codec_due(TimePoint at);
  Duration ack_delay() const;
  bool opened_by_peer(StreamId id) const { return (id % 2 == 1) == (config_.side == Side::acceptor); }

  bool control_frames_due() const;
  void write_control_frames(Buffer& out, TimePoint now);
  void write_acks(Buffer& out);
  void write_streams(CarrierId carrier, std::size_t end, std::size_t chunk, FrameBatch& out, TimePoint now);
  std::size_t write_chunk(SendStream& sending, StreamId id, std::size_t limit, CarrierId carrier,
                          FrameBatch& out);
  bool codec_has_message() const;
  void poll_codec();
  Result<void> resume_blocks();
  bool fill_control(std::size_t end, Buffer& out, PacketContent& content, TimePoint now);
  bool fill_chunk(SendStream& sending, StreamId id, CarrierId carrier, std::size_t end, Buffer& out,
                  PacketContent& content);
  void write_control_record(RecordType type, Bytes body);
  std::vector<Carrier>::iterator find_carrier(CarrierId id);
  void send_on(CarrierId carrier, Duration rtt);
  void announce_everything();
  void grant_open_credit();
  void forget_if_finished(StreamId id);
  void erase(StreamMap::iterator stream);
  bool busy() const;
  std::uint64_t first_credit() const;

  SessionConfig config_;
  CreditPool& pool_;
  RetainedBudget& retained_;
  StreamContext context_;
  std::vector<Carrier> carriers_;  // the last one is the newest
  CarrierId preferred_ = 0;        // 0: there is none
  StreamMap streams_;
  StreamMap::iterator next_to_end_;  // of a session that is over
  Stream* recent_ = nullptr;         // of streams_: the next packet mostly belongs to the same
  IntervalTree
      finished_peer_streams_;  // (id / 2) of streams that the peer opened and that are forgotten here
  std::uint32_t peer_streams_ = 0;
  std::uint32_t unopened_ = 0;  // of these: some of their bytes came, but not all of their OPEN
  StreamId next_id_;
  Scheduler scheduler_;
  Liveness liveness_;
  TimePoint now_;  // of the call in progress, for what streams start by themselves

  SendStream control_sending_;
  Reassembly control_receiving_;
  RecordParser control_parser_;
  SliceQueue control_behind_;         // in order, for another turn
  std::deque<StreamId> reads_later_;  // streams of which something waits for another turn
  bool codec_waits_ = false;          // it may name more streams

  // What control frames have to say next.
  std::vector<StreamId> ack_due_, credit_due_, reset_due_;
  KeyedMap<StreamId, std::uint64_t> repeated_acks_;  // for streams that are gone here
  // The last word on streams that are gone: said again when a carrier is lost, for one side learns that later
  // than the other, and may have spoken into a carrier that was dead already.
  static constexpr std::size_t kMaxLastAcks = 1024;
  std::deque<std::pair<StreamId, std::uint64_t>> last_acks_;
  std::vector<StreamId> return_due_;
  KeyedSet<StreamId> reset_done_;
  std::vector<std::uint64_t> pongs_;
  Buffer control_frames_;          // made and not yet put into a packet: whole frames
  std::size_t control_taken_ = 0;  // of them, from the front
  bool open_credit_due_ = false, control_ack_due_ = false, acks_ready_ = false;
  std::size_t unacknowledged_bytes_ = 0;  // received since the last ACK
  std::size_t unacknowledged_plain_ = 0;  // what blocks made of it
  std::optional<TimePoint> ack_at_;
  std::optional<TimePoint>
      codec_at_;  // when what the codec has to say of blocks that came is sent at the latest

  std::uint64_t open_granted_ = 0, open_used_ = 0;  // what the peer may use for its streams
  std::uint64_t peer_open_share_ = 0;               // was left when the peer set some aside
  std::uint64_t peer_open_limit_ = 0, peer_open_taken_ = 0, peer_floor_ = 0;  // what we may
  std::uint64_t acknowledged_bytes_ = 0;
  std::uint64_t line_rate_ = 0;

  std::deque<Event> events_;
  CloseFrame close_reason_{};
  config::Features peer_allowed_;
  bool told_peer_allows_ = false;  // waits in events_
  bool silent_ = false;
  std::optional<TimePoint> orphaned_since_;
  TimePoint next_reclaim_;
  bool over_ = false;
};

}  // namespace longhaul::link
