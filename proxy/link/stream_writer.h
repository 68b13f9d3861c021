// SPDX-License-Identifier: Apache-2.0
// The writing side of a stream for its flow: what may be written within credit, and how that direction ends.
// stream_output.h stores the bytes until the peer acknowledges them; stream_reader.h is the other direction.
#pragma once
#include <optional>
#include <span>

#include "proxy/link/credit.h"
#include "proxy/link/records.h"
#include "proxy/link/stream_entry.h"
#include "proxy/link/stream_output.h"

namespace longhaul::link {

enum class WriteState : std::uint8_t { open, ended, aborted, reset };

class StreamWriter {
 public:
  // All references outlive this object. It has no credit before open() or grant().
  StreamWriter(StreamEntry& entry, StreamContext& context, StreamBlocks& blocks)
      : entry_(entry), context_(context), output_(context, blocks) {}

  // ---- The flow's side. After end(), abort() or drop() nothing more is written.
  WriteState state() const { return state_; }
  bool is_open() const { return state_ == WriteState::open; }
  std::size_t may_write() const;  // plain bytes, by credit, backlog and memory
  // At most may_write() bytes; copied, unless they are many. `isolated`: they share nothing with other
  // streams' bytes in dictionaries.
  void write(Bytes plain, bool isolated = false);
  void write(Slice plain, bool isolated = false);
  // The same without a copy, for bytes that were read into `wire` from `kRecordRoom` on; `memory` is its
  // start. If no blocks are made, the record's head is written before the bytes. At most 64 KiB.
  static constexpr std::size_t kRecordRoom = 8;
  void write_in_place(Slice wire, std::byte* memory, std::size_t plain_bytes);
  // Sends to the module's twin, at this position between the bytes; at most may_write() of message_cost().
  void write_message(Bytes message);
  // may_write() returned too little for the caller: `writable` will be signalled as if it had returned zero.
  void wait_for_room() { starved_ = true; }
  void end();  // after the bytes written

  // ---- The stream's side.
  // Begins with an OPEN of this side. `open_credit`: the part of `credit` that is taken from the open credit.
  void open(Bytes request, std::uint64_t credit, std::uint64_t open_credit);
  // The peer has opened the stream, and grants this much.
  void grant(std::uint64_t credit) { credit_ = SendCredit(credit); }
  void answer(Bytes answer) { append_record(RecordType::answer, answer); }
  void abort();  // the local connection was reset after the bytes written; only while open
  void drop();   // drops waiting bytes; nothing more is sent
  // If nothing but the OPEN was given to a carrier: returns the plain bytes written after it.
  std::optional<Buffer> take_back();
  // Whether the peer has acknowledged the end of this direction.
  bool is_complete() const;

  // ---- The session's side.
  StreamOutput& output() { return output_; }
  const StreamOutput& output() const { return output_; }
  const SendCredit& credit() const { return credit_; }
  std::uint64_t open_credit() const { return open_credit_; }
  SendCredit::Outcome on_credit(std::uint64_t generation, std::uint64_t limit);
  void on_acknowledged(StreamOffset offset);
  // Some carriers were lost; unacknowledged data that was sent on any except these is sent again.
  void on_carriers_left(std::span<const CarrierId> carriers);
  // To be called after sending, or when memory may have become free.
  void tell_if_writable();

 private:
  void announce() { context_.owner.wants_to_send(entry_, output_); }
  void append(Slice wire);
  void append_record(RecordType type, Bytes body);

  StreamEntry& entry_;
  StreamContext& context_;
  StreamOutput output_;
  SendCredit credit_{0};
  std::uint64_t open_credit_ = 0;
  StreamOffset open_end_;  // end of this side's OPEN, in output_
  WriteState state_ = WriteState::open;
  mutable bool starved_ = false;  // may_write() has returned zero since `writable` was last signalled
};

}  // namespace longhaul::link
