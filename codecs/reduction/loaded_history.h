// SPDX-License-Identifier: Apache-2.0
// Which parts of the encoder's history came from disk, by their position in segments and in the history: so
// that nothing is loaded that the history still holds, and a load that the twin cannot perform is recognised.
#pragma once
#include <map>
#include <optional>

#include "codecs/reduction/disk_messages.h"
#include "codecs/reduction/shared_history.h"

namespace longhaul::reduction {

class LoadedHistory {
 public:
  // The latest position of this part of the segment.
  void add(const Load& load, std::uint64_t stream);
  // Whether blocks can still refer to the byte at `offset` of the segment.
  bool holds(SegmentId segment, std::uint32_t offset, const SharedHistory& shared) const;
  // The twin cannot perform this load. Returns the stream for which it was announced; nullopt if it never
  // was, is out of reach, or was given up before.
  std::optional<std::uint64_t> give_up(const Load& load);
  void forget_out_of_reach(const SharedHistory& shared);
  void clear();

 private:
  using Run = std::pair<SegmentId, std::uint32_t>;  // of a segment, from this offset
  struct Loaded {
    std::uint64_t length, ring_offset;
  };
  struct Announced {  // the same, by its position in the history
    Run run;
    std::uint64_t length, stream;
    bool given_up = false;
  };

  std::map<Run, Loaded> loaded_;
  std::map<std::uint64_t, Announced> announced_;
};

}  // namespace longhaul::reduction
