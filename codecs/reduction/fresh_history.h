// SPDX-License-Identifier: Apache-2.0
// Which parts of the encoder's history are new and in no segment yet, and which of them may become one: those
// that the twin holds as well. The owner makes the segments.
#pragma once
#include <vector>

#include "codecs/reduction/shared_history.h"

namespace longhaul::reduction {

inline constexpr std::uint32_t kSealBytes = 4u << 20;  // of a segment, if enough is there

class FreshHistory {
 public:
  void add(Interval block) { fresh_.add(block); }
  void clear() { fresh_ = {}; }

  // The ranges for segments, which are not fresh from then on: of kSealBytes, or up to the ring's end; with
  // `rest`, and if they will soon be out of reach, also shorter ones. Answers since the last search pay for
  // the next one: without enough of them there is no result.
  enum class Rest { stays, sealed };
  std::vector<Interval> take(const SharedHistory& shared, std::uint64_t ring_bytes, Rest rest);

 private:
  IntervalSet fresh_;
  // What the twin had answered in total when the history was last searched.
  std::uint64_t searched_at_ = 0, rest_searched_at_ = 0;
};

}  // namespace longhaul::reduction
