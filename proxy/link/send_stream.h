// SPDX-License-Identifier: Apache-2.0
// The sending half of a stream in wire bytes: stores the bytes, and records on which carrier they were sent
// and which must be retransmitted.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "codecs/interval_tree.h"
#include "codecs/slice_queue.h"
#include "proxy/link/stream_range.h"

namespace longhaul::link {

class SendStream {
 public:
  void append(Slice wire) { kept_.push(std::move(wire)); }

  // The next bytes to send, at most `limit` of them; lost ones first.
  std::optional<StreamRange> next(std::size_t limit) const;
  void copy(StreamRange range, Buffer& out) const { kept_.copy(range.numbers(), out); }
  // The same bytes in place: calls `take(Bytes)` for each piece; valid until the next change.
  template <class Take>
  void visit(StreamRange range, Take&& take) const {
    kept_.visit(range.numbers(), [&](Bytes piece) { return take(piece), true; });
  }
  void on_sent(StreamRange range, CarrierId carrier);

  // Returns how many bytes need not be stored any longer. An offset beyond the sent bytes is the peer's error
  // and is ignored.
  std::size_t on_acknowledged(StreamOffset offset);

  // Everything last sent on that carrier and not yet acknowledged must be sent again.
  void on_carrier_lost(CarrierId carrier);
  // The same for all carriers except these.
  void on_carriers_left(std::span<const CarrierId> carriers);
  // The same for one range, for carriers that lose packets.
  void on_lost(StreamRange range, CarrierId carrier);
  // The range was declared lost but has arrived. It is stored until it is acknowledged.
  void on_arrived(StreamRange range) { lost_.remove(range.numbers()); }

  // Requests an acknowledgement that may have been lost: if everything was sent, the last byte is sent again.
  void repeat_last_byte();

  // The stream was reset: drops everything. Returns how many bytes were stored.
  std::size_t clear();

  StreamOffset end_offset() const { return StreamOffset(kept_.end_offset()); }
  StreamOffset ever_sent() const { return next_unsent_; }  // the end of the bytes given to a carrier
  StreamOffset acknowledged() const { return StreamOffset(kept_.begin_offset()); }
  std::size_t retained_bytes() const { return kept_.size(); }
  std::size_t unsent_bytes() const { return static_cast<std::size_t>(end_offset() - next_unsent_); }
  bool wants_to_send() const { return !lost_.empty() || next_unsent_ < end_offset(); }
  bool repeats() const { return !lost_.empty(); }  // bytes must be sent again, before new ones
  bool all_acknowledged() const { return kept_.empty(); }

 private:
  template <class IsLost>
  void send_again(const IsLost& is_lost);

  struct Sent {
    StreamRange range;
    CarrierId carrier;
  };

  SliceQueue kept_;  // from the first byte not acknowledged to the last one written
  StreamOffset next_unsent_;
  std::vector<Sent>
      in_flight_;      // by offset, disjoint; neighbours on the same carrier are joined: mostly one entry
  IntervalTree lost_;  // declared lost; only the peer's acknowledgement frees them
};

}  // namespace longhaul::link
