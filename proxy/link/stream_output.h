// SPDX-License-Identifier: Apache-2.0
// The output of one stream: stores bytes and records, encodes blocks as late as possible, and keeps the wire
// bytes until the peer acknowledges them. stream_writer.h decides whether a flow may write.
#pragma once
#include <optional>

#include "proxy/config/features.h"
#include "proxy/link/pending_blocks.h"
#include "proxy/link/scheduler.h"
#include "proxy/link/send_stream.h"
#include "proxy/link/stream_blocks.h"
#include "proxy/link/stream_context.h"

namespace longhaul::link {

class StreamOutput {
 public:
  // Both outlive this object.
  StreamOutput(StreamContext& context, StreamBlocks& blocks) : context_(context), blocks_(blocks) {}
  ~StreamOutput() { context_.retained.remove(retained_bytes()); }
  StreamOutput(const StreamOutput&) = delete;
  StreamOutput& operator=(const StreamOutput&) = delete;

  // ---- Writing.
  // Sets how bytes are reduced, from the next block on; not at all before the first call.
  void use(const config::Features& features);
  // Whether plain bytes must be given to write(); if not, they are appended as DATA records. Features may
  // change while bytes wait: the change takes effect after them.
  bool makes_blocks() const { return blocks_.possible() && (reduces(stages_) || !pending_.empty()); }
  // `isolated`: other streams' bytes will not refer to these, nor these to theirs.
  void write(Bytes plain, bool isolated = false);  // copied
  void write(Slice plain, bool isolated = false);
  // A record, or a part of one, after everything written so far.
  void append(Slice wire);
  // How much may be written, considering the backlog and memory.
  std::uint64_t room() const;
  // Limit of the backlog. A whole block may wait in addition to the one that is being sent.
  std::size_t unsent_limit() const;

  // ---- Sending.
  // Encodes blocks if less than `room` bytes of wire are left to send. This happens as late as possible, so
  // that blocks contain all bytes written meanwhile, and can refer to everything that the peer is known to
  // hold. Returns true if it encoded the first block after a pause and left the others, so that this one need
  // not wait for them.
  bool prepare_to_send(std::size_t room);
  // Encodes all bytes written, for a flow that reads its counters for the last time.
  void encode_all();
  bool wants_to_send() const { return sending_.wants_to_send() || !pending_.empty(); }
  void on_sent(std::size_t bytes, TimePoint now) {
    meter_.on_sent(bytes, now);
    if (!wants_to_send()) pending_.on_quiet();
  }
  StreamClass stream_class(TimePoint now) const { return meter_.classify(unsent_bytes(), now); }
  // Written but not yet sent, including bytes that are not in a block yet.
  std::size_t unsent_bytes() const { return sending_.unsent_bytes() + pending_.size(); }
  // The stream's share of the RetainedBudget.
  std::size_t retained_bytes() const { return sending_.retained_bytes() + pending_.size(); }
  SendStream& sending() { return sending_; }
  const SendStream& sending() const { return sending_; }

  // ---- Completion.
  void on_acknowledged(StreamOffset offset) { context_.retained.remove(sending_.on_acknowledged(offset)); }
  bool all_acknowledged() const { return pending_.empty() && sending_.all_acknowledged(); }
  // Drops everything: nothing more is sent.
  void drop();
  // Takes back the plain bytes written after this offset. Returns nullopt if a carrier took bytes after it,
  // or if there are other records.
  std::optional<Buffer> take_back(StreamOffset offset);

 private:
  static bool reduces(const ReductionStages& stages) {
    return stages.compression || stages.dedup_memory || stages.dedup_disk;
  }
  ReductionStages front_stages() const;
  void keep(Slice wire);
  void encode_next();
  void send_plain(std::size_t bytes, Bytes gathered);

  StreamContext& context_;
  StreamBlocks& blocks_;
  PendingBlocks pending_;  // empty if no blocks are made
  SendStream sending_;
  TrafficMeter meter_;
  ReductionStages stages_{.dedup_memory = false, .dedup_disk = false, .compression = false};
  std::uint32_t shrinks_ = 1;  // compression ratio of the last block: plain bytes per wire byte
};

}  // namespace longhaul::link
