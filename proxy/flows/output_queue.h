// SPDX-License-Identifier: Apache-2.0
// The output of a module's half to the stream: raw bytes, messages for its twin, the notice that it steps
// aside, and the end. Keeps their order while they wait for credit, and frames everything that is not raw
// (proxy/modules/twin_records.h). module_host.h decides what may be output.
#pragma once
#include <cstdint>
#include <deque>

#include "codecs/slice.h"
#include "proxy/link/stream.h"

namespace longhaul::flows {

class OutputQueue {
 public:
  // The stream outlives this object.
  explicit OutputQueue(link::Stream& stream) : stream_(stream) {}

  // ---- Output, after all earlier output. Output without a reader is dropped.
  void write(Slice bytes, bool isolated = false);  // as in StreamWriter
  void write_message(Slice message);
  void step_aside();  // once; only bytes that the half held before may follow
  void end();         // once

  // Writes as much to the stream as it accepts now. Returns true if anything was written.
  bool flush();

  // ---- Pending output.
  bool empty() const { return items_.empty(); }
  std::size_t size_bytes() const { return bytes_; }

  // ---- The state of this direction.
  void stop() { stopped_ = true; }  // the other end no longer reads
  bool is_stopped() const { return stopped_; }
  bool has_reader() const { return !stopped_ && stream_.writer().is_open(); }
  bool has_ended() const { return ended_; }
  // Nothing may be written to the stream any more: it has ended or was aborted, or has no reader.
  bool is_over() const { return (ended_ || !has_reader()) && items_.empty(); }
  bool has_stepped_aside() const { return aside_; }
  // It has stepped aside, and all pending output is written.
  bool passes() const { return aside_ && items_.empty(); }

 private:
  struct Item {
    enum class Kind : std::uint8_t { raw, isolated, message, aside, end } kind;
    Slice bytes;
  };

  void put(Item::Kind kind, Slice bytes);
  bool flush_raw(Item& item);
  bool flush_record(Item& item);

  link::Stream& stream_;
  std::deque<Item> items_;
  std::size_t bytes_ = 0;  // in items_
  bool ended_ = false, aside_ = false;
  bool stopped_ = false;
};

}  // namespace longhaul::flows
