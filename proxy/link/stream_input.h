// SPDX-License-Identifier: Apache-2.0
// The input of one stream: turns wire bytes in any order into records in order. Records after a block that
// cannot be decoded yet, or beyond the work of a turn, are stored unread. stream_reader.h interprets them.
#pragma once
#include <memory>
#include <optional>

#include "codecs/slice_queue.h"
#include "proxy/link/reassembly.h"
#include "proxy/link/record_parser.h"
#include "proxy/link/stream_context.h"

namespace longhaul::link {

class StreamInput {
 public:
  // The context outlives this object.
  explicit StreamInput(StreamContext& context) : context_(context) {}
  ~StreamInput() { context_.waiting_cost -= counted_; }
  StreamInput(const StreamInput&) = delete;
  StreamInput& operator=(const StreamInput&) = delete;

  // Takes wire bytes, and gives `records` those that can be read now. If a gap became smaller or closed,
  // returns how long bytes had waited for it.
  Result<std::optional<Duration>> take(StreamOffset offset, Bytes wire, TimePoint now, RecordSink& records);
  // Reads stored bytes until `records` waits.
  Result<void> read_on(RecordSink& records);
  // Whether bytes wait only for read_on().
  bool has_unread() const { return parked_ && !waits_for_block(); }

  // ---- A block that cannot be decoded yet: nothing after it is read before on_decoded().
  void wait_for(Bytes block);  // the body of its record; copied
  bool waits_for_block() const { return parked_ && !parked_->block.empty(); }
  const Slice& waiting_block() const { return parked_->block; }
  void on_decoded() {
    if (parked_) parked_->block = {};
  }

  // Further bytes are acknowledged and dropped. If this is called while records are read, the caller must
  // drop the remaining records of that piece.
  void discard();
  bool discards() const { return discards_; }

  StreamOffset contiguous() const { return receiving_.contiguous(); }
  StreamOffset end() const { return receiving_.end(); }  // including bytes after a gap

 private:
  void park(Bytes wire);
  void count_waiting();

  StreamContext& context_;
  Reassembly receiving_;
  RecordParser parser_;
  TimePoint stalled_since_{};  // while bytes wait after a gap: time since the last byte in order
  // A block that cannot be decoded yet, and all wire bytes after it; or only wire bytes, for another turn.
  struct Parked {
    Slice block;  // the body of its record; may be empty
    SliceQueue behind;
  };
  std::unique_ptr<Parked> parked_;
  std::uint64_t counted_ = 0;  // in StreamContext::waiting_cost
  bool discards_ = false;
};

}  // namespace longhaul::link
