// SPDX-License-Identifier: Apache-2.0
// One flow's two directions on the link, as the flow sees them: write, end, read, consume, each within
// credit, and how they end. Bytes on their way are in stream_output.h and stream_input.h; the session sends
// them.
#pragma once
#include <optional>
#include <span>

#include "codecs/slice_queue.h"
#include "proxy/link/block_counters.h"
#include "proxy/link/credit.h"
#include "proxy/link/records.h"
#include "proxy/link/stream_blocks.h"
#include "proxy/link/stream_context.h"
#include "proxy/link/stream_inbox.h"
#include "proxy/link/stream_input.h"
#include "proxy/link/stream_opening.h"
#include "proxy/link/stream_output.h"

namespace longhaul::link {

enum class ReadState : std::uint8_t { open, ended, aborted, reset };

class Stream final : private RecordSink {
 public:
  Stream(StreamId id, StreamContext& context);  // the peer opens it
  // `open_credit`: how much of `send_credit` is taken from the open credit.
  Stream(StreamId id, StreamContext& context, OpenRequest request, std::uint64_t send_credit,
         std::uint64_t open_credit);

  StreamId id() const { return id_; }
  bool begun() const { return opening_.begun(); }  // always true for a flow that knows the stream
  const OpenRequest& request() const { return opening_.request(); }
  const std::optional<OpenAnswer>& answer() const { return opening_.answer(); }
  ResetCode reset_code() const { return reset_code_; }
  const BlockCounters& blocks() const { return blocks_.counters(); }

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

  const SliceQueue& readable() const { return inbox_.bytes(); }
  void consume(std::size_t bytes, TimePoint now, Duration rtt);
  // The next module message, once everything before it was consumed.
  std::optional<Slice> poll_message(TimePoint now, Duration rtt);
  // How many of the readable bytes precede the next module message.
  std::size_t readable_before_message() const { return inbox_.before_message(); }
  // What follows the readable bytes.
  ReadState read_state() const { return read_state_; }

  // ---- The session's side.
  void use_features(const config::Features& features);
  // Its bytes on their way to the peer; the session sends them.
  StreamOutput& output() { return output_; }
  const StreamOutput& output() const { return output_; }
  // After sending, or when memory may have become free.
  void tell_if_writable();
  Result<void> on_frame(std::uint64_t offset, Bytes payload, TimePoint now);
  // A block that had to wait may be decodable now, and the bytes behind it can be read.
  Result<void> resume(TimePoint now);
  // Continues with bytes that arrived after the turn's work was done.
  Result<void> read_on(TimePoint now);
  void on_acknowledged(std::uint64_t offset);
  // Some carriers were lost, these are left: unacknowledged data sent on others is sent again.
  void on_carriers_left(std::span<const CarrierId> carriers);
  SendCredit::Outcome on_credit(std::uint64_t generation, std::uint64_t limit);
  void on_reset(ResetCode code);
  ReceiveCredit* receive_credit() { return inbox_.credit(); }
  const SendCredit& send_credit() const { return send_credit_; }
  std::uint64_t open_credit() const { return open_credit_; }
  std::uint64_t wire_received() const { return input_.contiguous(); }
  std::uint64_t wire_seen() const { return input_.end(); }  // including bytes behind a gap
  // Both directions are complete and the peer knows: the session may forget the stream once the flow released
  // it.
  bool finished() const;
  // Both directions will complete by themselves; the flow has nothing left to do.
  bool may_finish() const;

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
  bool waits() const override { return input_.waits_for_block() || context_.work.used_up(); }
  Result<void> on_open(Bytes body);
  Result<void> on_answer(Bytes body);
  Result<void> on_block(Bytes body);
  bool decode(const ParsedBlock& block);
  Result<void> on_message(Bytes body);
  void append_record(RecordType type, Bytes body);
  void append(Slice wire);
  void announce_credit_if(bool is_due);
  void finish_reading(ReadState state);
  void stop_sending(SendState state);
  void stop_reading();
  void tell_reset(ResetCode code);

  StreamId id_;
  StreamContext& context_;
  StreamOpening opening_;
  StreamBlocks blocks_;

  StreamOutput output_;
  SendCredit send_credit_;
  std::uint64_t open_credit_ = 0;
  std::uint64_t open_end_ = 0;  // of the OPEN, in output_
  SendState send_state_ = SendState::open;
  mutable bool starved_ = false;  // may_write() returned zero since `writable` was signalled

  StreamInput input_;
  StreamInbox inbox_;
  TimePoint received_at_{};
  ReadState read_state_ = ReadState::open;
  ResetCode reset_code_ = ResetCode::connection_reset;
};

}  // namespace longhaul::link
