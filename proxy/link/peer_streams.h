// SPDX-License-Identifier: Apache-2.0
// Counts the streams that the peer has opened: how many are live, which have ended, and how many have an
// incomplete OPEN. Bounds the memory that a peer can use here.
#pragma once
#include "codecs/interval_tree.h"
#include "proxy/link/types.h"

namespace longhaul::link {

class PeerStreams {
 public:
  // `most`: the limit of the peer's live streams. Streams beyond it are reset when their OPEN is read.
  PeerStreams(Side own_side, std::uint32_t most) : own_side_(own_side), most_(most) {}

  bool opens(StreamId id) const { return (id.number() % 2 == 1) == (own_side_ == Side::acceptor); }
  // The stream was live, and is forgotten here.
  bool ended(StreamId id) const { return ended_.contains(id.number() / 2); }
  // Counts a new stream. Returns false if there are more than an honest peer opens.
  bool begin() {
    if (live_ >= most_ + kMaxRefused) return false;
    ++live_;
    return true;
  }
  bool within_limit() const { return live_ <= most_; }
  void end(StreamId id) {
    ended_.add({id.number() / 2, id.number() / 2 + 1});
    --live_;
  }
  // A part of the stream's OPEN has arrived; later, the OPEN is complete or the stream has ended.
  void open_begins() { ++unopened_; }
  void open_is_read() { --unopened_; }
  // Limits that an honest peer does not exceed.
  bool too_many_unopened() const { return unopened_ > kMaxUnopened; }
  // Each gap in the numbers is a stream that was opened and has not ended.
  bool too_many_gaps() const { return ended_.count() > most_ + kMaxGaps; }

 private:
  static constexpr std::size_t kMaxRefused = 8192;   // streams beyond the limit, until the peer knows
  static constexpr std::size_t kMaxUnopened = 4096;  // when the session ends, all of them end in one turn
  static constexpr std::size_t kMaxGaps = 65'536;

  Side own_side_;
  std::uint32_t most_;
  std::uint32_t live_ = 0;
  std::uint32_t unopened_ = 0;
  IntervalTree ended_;  // id / 2
};

}  // namespace longhaul::link
