// SPDX-License-Identifier: Apache-2.0
// Bytes that are also sent on a second carrier, because the first one may have stopped delivering. Streams
// have offsets, so the peer drops the later copy. The owner decides which carrier that is, and when.
#pragma once
#include <algorithm>
#include <deque>

#include "proxy/link/send_stream.h"
#include "proxy/link/stream_range.h"

namespace longhaul::link {

class SecondCopies {
 public:
  struct Copy {
    StreamId stream;
    StreamRange bytes;
  };

  // kNoCarrier: none. Copies that wait for another carrier are dropped; if the originals are lost, the first
  // carrier sends them again.
  void send_on(CarrierId carrier) {
    if (carrier == carrier_) return;
    carrier_ = carrier;
    waiting_.clear();
    bytes_ = 0;
  }
  CarrierId carrier() const { return carrier_; }
  bool active() const { return carrier_ != kNoCarrier; }
  bool wait_for(CarrierId carrier) const { return active() && carrier == carrier_ && !waiting_.empty(); }

  // Drops the copy if too many wait: they would only delay each other.
  void add(StreamId stream, StreamRange bytes) {
    if (!active() || bytes_ + bytes.size() > kMostBytes) return;
    bytes_ += bytes.size();
    waiting_.push_back({stream, bytes});
  }
  const Copy& front() const { return waiting_.front(); }
  // The front's bytes below this offset are sent, or no longer needed.
  void taken(StreamOffset until) {
    Copy& copy = waiting_.front();
    until = std::min(until, copy.bytes.end);
    if (until > copy.bytes.begin) {
      bytes_ -= until - copy.bytes.begin;
      copy.bytes.begin = until;
    }
    if (copy.bytes.empty()) waiting_.pop_front();
  }

  // True for short messages; copies of a bulk transfer would only crowd out others.
  static bool worth_it(const SendStream& stream) {
    return stream.ever_sent() - stream.acknowledged() <= kLittleInFlight;
  }

  static constexpr std::uint64_t kMostBytes = 64 * 1024, kLittleInFlight = 32 * 1024;

 private:
  CarrierId carrier_ = kNoCarrier;
  std::deque<Copy> waiting_;
  std::uint64_t bytes_ = 0;
};

}  // namespace longhaul::link
