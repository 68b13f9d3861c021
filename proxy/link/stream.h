// SPDX-License-Identifier: Apache-2.0
// The two directions of one flow on the link, and what concerns both: how the stream begins, and how it ends
// if one side gives it up. stream_writer.h has the written bytes, stream_reader.h the bytes to be read.
#pragma once
#include <optional>

#include "proxy/link/block_counters.h"
#include "proxy/link/record_parser.h"
#include "proxy/link/stream_blocks.h"
#include "proxy/link/stream_context.h"
#include "proxy/link/stream_entry.h"
#include "proxy/link/stream_opening.h"
#include "proxy/link/stream_reader.h"
#include "proxy/link/stream_writer.h"

namespace longhaul::link {

class Stream final : private RecordSink {
 public:
  Stream(StreamId id, StreamContext& context);  // opened by the peer
  // `open_credit`: how much of `send_credit` is taken from the open credit.
  Stream(StreamId id, StreamContext& context, OpenRequest request, std::uint64_t send_credit,
         std::uint64_t open_credit);

  StreamId id() const { return entry_.id; }
  bool begun() const { return entry_.begun; }  // always true for a flow that knows the stream
  const OpenRequest& request() const { return opening_.request(); }
  const std::optional<OpenAnswer>& answer() const { return opening_.answer(); }
  ResetCode reset_code() const { return reset_code_; }
  const BlockCounters& blocks() const { return blocks_.counters(); }

  // ---- The two directions.
  StreamWriter& writer() { return writer_; }
  const StreamWriter& writer() const { return writer_; }
  StreamReader& reader() { return reader_; }
  const StreamReader& reader() const { return reader_; }

  // ---- The flow's side of both.
  void give_answer(const OpenAnswer& answer);
  void abort();                // the local connection was reset after the bytes written
  void reset(ResetCode code);  // ends both directions at once; nothing else is delivered
  // If nothing but the OPEN was given to a carrier, and no answer came: returns the plain bytes written, and
  // resets the stream. Returns nullopt if the server may have received some of them, or if the flow was
  // answered.
  std::optional<Buffer> take_back();

  // ---- The session's side.
  // Lists the session's queues that hold the stream.
  StreamEntry& entry() { return entry_; }
  const StreamEntry& entry() const { return entry_; }
  void use_features(const config::Features& features);
  Result<void> on_frame(StreamOffset offset, Bytes payload, TimePoint now);
  // A block that had to wait may be decodable now; then the bytes after it can be read.
  Result<void> resume(TimePoint now);
  // Continues with bytes that arrived after the turn's work was done.
  Result<void> read_on(TimePoint now) { return reader_.read_on(now, *this); }
  void on_reset(ResetCode code);
  // Whether both directions are complete and the peer has acknowledged that: the session may forget the
  // stream once the flow has released it.
  bool finished() const;
  // Whether both directions will complete by themselves, so that the flow has nothing left to do.
  bool may_finish() const;

 private:
  Result<void> on_data(Bytes plain) override;
  Result<void> on_record(RecordType type, Bytes body) override;
  bool waits() const override { return reader_.waits_for_block() || context_.work.used_up(); }
  Result<void> on_open(Bytes body);
  Result<void> on_answer(Bytes body);
  Result<void> on_block(Bytes body);
  void on_abort();
  void begin();
  void apply(const config::Features& features);
  void give_up_undecodable();
  void tell_reset(ResetCode code);

  StreamEntry entry_;
  StreamContext& context_;
  StreamOpening opening_;
  StreamBlocks blocks_;
  StreamWriter writer_;
  StreamReader reader_;
  ResetCode reset_code_ = ResetCode::connection_reset;
};

}  // namespace longhaul::link
