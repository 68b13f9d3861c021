// SPDX-License-Identifier: Apache-2.0
// What one stream receives: wire bytes in any order become records in order. Records behind a block that
// cannot be decoded yet, or beyond the work of a turn, are kept unread. Their meaning is in stream_reader.h.
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

  // Takes wire bytes, and gives `records` those that can be read now. The result says how long bytes had
  // waited for a gap before them that is now smaller or closed.
  Result<std::optional<Duration>> take(StreamOffset offset, Bytes wire, TimePoint now, RecordSink& records);
  // Reads what waits, as long as `records` does not wait itself.
  Result<void> read_on(RecordSink& records);
  // Bytes wait for nothing but read_on().
  bool has_unread() const { return parked_ && !waits_for_block(); }

  // ---- A block that cannot be decoded yet: nothing behind it is read before on_decoded().
  void wait_for(Bytes block);  // the body of its record; copied
  bool waits_for_block() const { return parked_ && !parked_->block.empty(); }
  const Slice& waiting_block() const { return parked_->block; }
  void on_decoded() {
    if (parked_) parked_->block = {};
  }

  // Further bytes are received, to be acknowledged, and dropped. If this is called while records are read,
  // the others of that piece are for the reader to drop.
  void discard();
  bool discards() const { return discards_; }

  StreamOffset contiguous() const { return receiving_.contiguous(); }
  StreamOffset end() const { return receiving_.end(); }  // including bytes behind a gap

 private:
  void park(Bytes wire);
  void count_waiting();

  StreamContext& context_;
  Reassembly receiving_;
  RecordParser parser_;
  TimePoint stalled_since_{};  // while bytes wait behind a gap: time since the last byte in order
  // A block that cannot be decoded yet, and all wire bytes behind it; or only these, for another turn.
  struct Parked {
    Slice block;  // the body of its record; may be empty
    SliceQueue behind;
  };
  std::unique_ptr<Parked> parked_;
  std::uint64_t counted_ = 0;  // in StreamContext::waiting_cost
  bool discards_ = false;
};

}  // namespace longhaul::link
