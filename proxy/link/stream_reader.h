// SPDX-License-Identifier: Apache-2.0
// The reading side of a stream for its flow: the peer's data and messages, within the credit granted, and how
// that direction ends. stream_input.h turns received bytes into records; stream.h has the records that
// concern both directions; stream_writer.h is the other direction.
#pragma once
#include <optional>

#include "codecs/slice_queue.h"
#include "proxy/link/record_parser.h"
#include "proxy/link/stream_blocks.h"
#include "proxy/link/stream_entry.h"
#include "proxy/link/stream_inbox.h"
#include "proxy/link/stream_input.h"

namespace longhaul::link {

enum class ReadState : std::uint8_t { open, ended, aborted, reset };

class StreamReader {
 public:
  // All references outlive this object. It grants no credit before open() or on_opened().
  StreamReader(StreamEntry& entry, StreamContext& context, StreamBlocks& blocks)
      : entry_(entry), context_(context), blocks_(blocks), input_(context) {}

  // ---- The flow's side.
  const SliceQueue& readable() const { return inbox_.bytes(); }
  void consume(std::size_t bytes, TimePoint now, Duration rtt);
  // The next module message, once everything before it was consumed.
  std::optional<Slice> poll_message(TimePoint now, Duration rtt);
  // How many of the readable bytes precede the next module message.
  std::size_t readable_before_message() const { return inbox_.before_message(); }
  // What follows the readable bytes.
  ReadState state() const { return state_; }
  bool is_open() const { return state_ == ReadState::open; }

  // ---- The stream's side.
  // Grants the initial credit: for a stream of this side, as in its OPEN; the small credit in a peer's OPEN
  // is raised.
  const ReceiveCredit& open(std::uint64_t fixed_window);
  void on_opened(std::uint64_t initial, std::uint64_t fixed_window);
  // Gives each record of the peer's wire bytes, and of those that waited for another turn, to `records`,
  // which returns records of this direction by the functions below.
  Result<void> take(StreamOffset offset, Bytes wire, TimePoint now, RecordSink& records);
  Result<void> read_on(TimePoint now, RecordSink& records);
  Result<void> on_data(Bytes plain);
  Result<void> on_message(Bytes body);
  // Whether the block could be restored. If it waits, nothing after it is read until try_again() decides.
  enum class Block : std::uint8_t { restored, waits, undecodable };
  Result<Block> on_block(Bytes body);
  bool waits_for_block() const { return input_.waits_for_block(); }
  Block try_again(TimePoint now);
  // The peer's last record was read.
  void finish(ReadState state);
  // The flow reads no more; data that still arrives is acknowledged and dropped.
  void discard();
  bool discards() const { return input_.discards(); }
  void reset();

  // ---- The session's side.
  // Null if the stream has not begun, or has no reader any more.
  ReceiveCredit* credit() { return inbox_.credit(); }
  StreamOffset wire_received() const { return input_.contiguous(); }
  StreamOffset wire_seen() const { return input_.end(); }  // including bytes after a gap

 private:
  Block decode(const ParsedBlock& block);
  void announce_credit_if(bool is_due);

  StreamEntry& entry_;
  StreamContext& context_;
  StreamBlocks& blocks_;
  StreamInput input_;
  StreamInbox inbox_;
  TimePoint received_at_{};
  ReadState state_ = ReadState::open;
};

}  // namespace longhaul::link
