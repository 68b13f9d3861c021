// SPDX-License-Identifier: Apache-2.0
// The loads for the twin's blocks: brings the bytes from disk to their positions in the decoder's history,
// and reports those that are not available. The decoder restores the blocks afterwards.
#pragma once
#include <deque>
#include <unordered_map>

#include "codecs/keyed_hash.h"
#include "codecs/reduction/block_decoder.h"
#include "codecs/reduction/common_segments.h"
#include "codecs/reduction/disk_messages.h"
#include "codecs/reduction/peer_segments.h"

namespace longhaul::reduction {

class TwinLoads {
 public:
  // `own`: the segments that the peer may read. All outlive this object.
  TwinLoads(PeerSegments& store, const CommonSegments& own, BlockDecoder& decoder)
      : store_(store), own_(own), decoder_(decoder) {}

  // Done: everything available is in the history; otherwise poll_ready() returns the stream later.
  enum class Brought { waits, done };
  Result<Brought> bring(std::uint64_t stream, const BlockHeader& header, Bytes encoded);
  std::optional<std::uint64_t> poll_ready();
  // The stream's block was decoded, or the stream has ended.
  void forget(std::uint64_t stream) { left_.erase(stream); }
  // Returns false if it was not requested here.
  bool on_loaded(LoadId load, const std::optional<Slice>& bytes);

  // Loads that failed.
  bool has_message() const { return !cannot_.empty(); }
  std::optional<Slice> poll_message();

 private:
  struct Wanted {
    std::uint64_t stream;
    Load load;
  };

  void start();
  void finish(const Wanted& one, const std::optional<Slice>& bytes);

  PeerSegments& store_;
  const CommonSegments& own_;
  BlockDecoder& decoder_;
  KeyedMap<std::uint64_t, std::size_t> left_;  // by stream: loads that wait or are in progress
  std::deque<Wanted> waiting_;                 // until others are completed
  std::unordered_map<LoadId, Wanted> under_way_;
  std::uint64_t under_way_bytes_ = 0;
  std::deque<std::uint64_t> ready_;
  std::deque<Slice> cannot_;
};

}  // namespace longhaul::reduction
