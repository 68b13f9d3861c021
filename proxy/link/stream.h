// SPDX-License-Identifier: Apache-2.0
// One flow's two directions on the link, as the flow sees them: write, end, read, consume, each within
// credit. The session sends the bytes.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "codecs/block_codec.h"
#include "codecs/slice_queue.h"
#include "codecs/work.h"
#include "proxy/link/block_counters.h"
#include "proxy/link/credit.h"
#include "proxy/link/pending_blocks.h"
#include "proxy/link/reassembly.h"
#include "proxy/link/records.h"
#include "proxy/link/scheduler.h"
#include "proxy/link/send_stream.h"

namespace longhaul::link {

class Stream;

enum class EventKind : std::uint8_t {
  opened,    // the peer opened this stream: Stream::request()
  answered,  // the peer answered our open: Stream::answer()
  readable,  // bytes, a module message, or the end of the peer's direction
  writable,  // may_write() is no longer zero
  features,  // the peer changed the features of the flow
  stopped,   // the peer no longer reads: nothing can be written, earlier data of its own is still delivered
  reset,     // both directions are gone: Stream::reset_code()
};

// What a stream tells the session that holds it.
class StreamOwner {
 public:
  virtual ~StreamOwner() = default;
  virtual void wants_to_send(Stream& stream) = 0;
  virtual void tell(Stream& stream, EventKind kind) = 0;
  virtual void announce_credit(Stream& stream) = 0;
  virtual void announce_reset(Stream& stream) = 0;
  virtual Result<void> take_open_credit(
      std::uint64_t bytes) = 0;             // the peer used some for a stream it opened
  virtual bool admits(Stream& opened) = 0;  // by the peer, its OPEN is read: may it live?
  // The work of this turn is done: call Stream::read_on() in another one.
  virtual void reads_later(Stream& stream) = 0;
  // Limit for all streams together of bytes that were not examined yet.
  virtual std::uint64_t waiting_allowance() const = 0;
};

// State that all streams of a daemon, or of a session, share. Everything outlives the streams.
struct StreamContext {
  StreamOwner& owner;
  CreditPool& pool;
  RetainedShare retained;
  BlockCodec* codec = nullptr;            // none: bytes flow without blocks
  std::size_t unsent_limit = 256 * 1024;  // what a stream may hold ready beyond what it has sent
  // Size limit of a stream's first block after a pause: what the line carries in a few milliseconds, so that
  // the far side need not wait long for its end.
  std::size_t first_block_bytes = kMinFirstBlock;
  // Bytes of all streams of the session that wait for gaps to close, for the end of their record, for blocks,
  // or for another turn.
  std::uint64_t waiting_cost = 0;
  SessionCredit credit{};
  WorkBudget work{};
  FeatureKeys keys{};  // of the peer
  TimePoint now{};     // of the call in progress

  static constexpr std::size_t kMinFirstBlock = 1400;  // what goes into one packet
};

enum class ReadState : std::uint8_t { open, ended, aborted, reset };

class Stream final : private RecordSink {
 public:
  Stream(StreamId id, StreamContext& context);  // the peer opens it
  // `open_credit`: how much of `send_credit` is taken from the open credit.
  Stream(StreamId id, StreamContext& context, OpenRequest request, std::uint64_t send_credit,
         std::uint64_t open_credit);
  ~Stream() override;

  StreamId id() const { return id_; }
  bool begun() const { return request_ != nullptr; }  // always true for a flow that knows the stream
  const OpenRequest& request() const { return *request_; }
  const std::optional<OpenAnswer>& answer() const { return answer_; }
  ResetCode reset_code() const { return reset_code_; }

  // ---- The flow's side. After end(), abort() or reset() nothing more is written.
  void give_answer(const OpenAnswer& answer);
  std::size_t may_write() const;  // plain bytes, by credit, backlog and memory
  bool writes() const { return send_state_ == SendState::open; }
  void write(Bytes plain);  // at most may_write() bytes; copied
  void write(Slice plain);  // the same; a large one is kept in place
  // The same without a copy, for bytes that were read into `wire` from `kRecordRoom` on; `memory` is its
  // front. If no blocks are made the record's head is put before them. At most 64 KiB.
  static constexpr std::size_t kRecordRoom = 8;
  void write_in_place(Slice wire, std::byte* memory, std::size_t plain_bytes);
  // To the module's twin, at this position between the bytes; at most may_write() of message_cost().
  void write_message(Bytes message);
  // may_write() returned too little for the caller: `writable` is signalled as if it had returned zero.
  void wait_for_room() { starved_ = true; }
  void end();                  // this direction ends behind the bytes written
  void abort();                // the local connection was reset behind the bytes written
  void reset(ResetCode code);  // both directions are gone now, nothing else is delivered
  // If only the OPEN was ever given to a carrier, and no answer came: returns the plain bytes written, and
  // resets the stream. No result: the server may have some of them, or the flow is answered.
  std::optional<Buffer> take_back();

  const SliceQueue& readable() const { return readable_; }
  void consume(std::size_t bytes, TimePoint now, Duration rtt);
  // The next module message, once everything before it was consumed.
  std::optional<Slice> poll_message(TimePoint now, Duration rtt);
  // How many of the readable bytes precede the next module message.
  std::size_t readable_before_message() const;
  // What follows the readable bytes.
  ReadState read_state() const { return read_state_; }
  std::uint64_t wire_sent() const { return sending_.end_offset(); }  // of what is encoded
  std::uint64_t wire_received() const { return receiving_.contiguous(); }
  std::uint64_t wire_seen() const { return receiving_.end(); }  // including bytes behind a gap
  const BlockCounters& blocks() const { return blocks_; }
  // Makes blocks of all bytes written, for a flow that reads its counters for the last time.
  void encode_all();

  // ---- The session's side.
  void use_features(const config::Features& features) { request_->features = features; }
  Result<void> on_frame(std::uint64_t offset, Bytes payload, TimePoint now);
  void on_acknowledged(std::uint64_t offset);
  // Some carriers were lost, these are left: unacknowledged data sent on others is sent again.
  void on_carriers_left(std::span<const CarrierId> carriers);
  SendCredit::Outcome on_credit(std::uint64_t generation, std::uint64_t limit);
  void on_reset(ResetCode code);
  // A block that had to wait may be decodable now, and the bytes behind it can be read.
  Result<void> resume(TimePoint now);
  // Continues with bytes that arrived after the turn's work was done.
  Result<void> read_on(TimePoint now);
  // Makes blocks, if less than `room` bytes of wire are left to send: as late as this, so that they contain
  // all bytes written meanwhile, and can refer to everything that the peer is known to hold. True: it made
  // the first block after a pause and left the others, so that this one need not wait for them.
  bool prepare_to_send(std::size_t room);
  bool wants_to_send() const { return sending_.wants_to_send() || !pending_.empty(); }
  // Written and not yet sent, of which some is still to become blocks.
  std::size_t unsent_bytes() const { return sending_.unsent_bytes() + pending_.size(); }
  // The stream's share of the RetainedBudget.
  std::size_t retained_bytes() const { return sending_.retained_bytes() + pending_.size(); }
  SendStream& sending() { return sending_; }
  const SendStream& sending() const { return sending_; }
  ReceiveCredit* receive_credit() { return receive_credit_ ? &*receive_credit_ : nullptr; }
  const SendCredit& send_credit() const { return send_credit_; }
  std::uint64_t open_credit() const { return open_credit_; }
  // Both directions are complete and the peer knows: the session may forget the stream once the flow released
  // it.
  bool finished() const;
  // Both directions will complete by themselves; the flow has nothing left to do.
  bool may_finish() const {
    return send_state_ != SendState::open &&
           (read_state_ != ReadState::open || send_state_ == SendState::aborted) &&
           (readable_.empty() || send_state_ == SendState::reset);
  }
  void tell_if_writable();
  void on_sent(std::size_t bytes, TimePoint now) {
    meter_.on_sent(bytes, now);
    if (!wants_to_send()) pending_.on_quiet();
  }
  StreamClass stream_class(TimePoint now) const { return meter_.classify(unsent_bytes(), now); }

  // Owned by the session: whether the stream is in the queue for sending, in the list for an ACK…
  struct Marks {
    bool queued = false, ack_due = false, credit_due = false, return_due = false;
    bool reset_pending = false, reset_queued = false;
    bool released = false;
    bool told_readable = false, told_writable = false, told_features = false, told_stopped = false;
    bool reads_later = false;
    bool unopened = false;
  } marks;

 private:
  enum class SendState : std::uint8_t { open, ended, aborted, reset };

  Result<void> on_data(Bytes plain) override;
  Result<void> on_record(RecordType type, Bytes body) override;
  bool waits() const override { return waits_for_block() || context_.work.used_up(); }
  bool waits_for_block() const { return parked_ && !parked_->block.empty(); }
  Result<void> on_open(Bytes body);
  Result<void> on_block(Bytes body);
  bool decode(const ParsedBlock& block);
  Result<void> on_message(Bytes body);
  void deliver(Slice plain);
  void append_record(RecordType type, Bytes body);
  void append(Slice wire);
  void keep(Slice wire);
  bool makes_blocks() const;
  std::size_t unsent_limit() const;
  void encode_next();
  void send_plain(std::size_t bytes, Bytes gathered);
  void drop_unsent();
  Result<void> park(Bytes wire);
  void count_waiting();
  void forget_in_codec();
  void stop_encoding();
  void finish_reading(ReadState state);
  void stop_sending(SendState state);
  void stop_reading();
  void tell_reset(ResetCode code);

  StreamId id_;
  StreamContext& context_;
  std::unique_ptr<OpenRequest> request_;
  std::optional<OpenAnswer> answer_;
  bool opened_here_;

  PendingBlocks pending_;  // empty where no blocks are made
  SendStream sending_;
  SendCredit send_credit_;
  std::uint64_t open_credit_ = 0;
  std::uint64_t open_end_ = 0;  // of the OPEN, in sending_
  SendState send_state_ = SendState::open;
  mutable bool starved_ = false;  // may_write() returned zero since `writable` was signalled
  TrafficMeter meter_;
  BlockCounters blocks_;
  bool known_to_codec_ = false;
  std::uint32_t shrinks_ = 1;  // plain bytes for one on the wire, in the last block

  Reassembly receiving_;
  RecordParser parser_;
  std::optional<ReceiveCredit> receive_credit_;
  TimePoint received_at_{};
  TimePoint stalled_since_{};  // while bytes wait behind a gap: time since the last byte in order
  // A block that cannot be decoded yet, and all wire bytes behind it; or only these, for another turn.
  struct Parked {
    Slice block;  // the body of its record; may be empty
    SliceQueue behind;
  };
  std::unique_ptr<Parked> parked_;
  std::uint64_t counted_waiting_ = 0;  // in StreamContext::waiting_cost
  SliceQueue readable_;
  struct Message {
    std::uint64_t position;
    Slice body;
  };
  std::vector<Message> messages_;
  std::size_t first_message_ = 0;  // those before it were handed on
  ReadState read_state_ = ReadState::open;
  bool discarding_ = false;
  ResetCode reset_code_ = ResetCode::connection_reset;
};

}  // namespace longhaul::link
