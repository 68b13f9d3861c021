// SPDX-License-Identifier: Apache-2.0
// Which parts of the encoder's history are new and not in a segment yet, and which of them may become one:
// those that the twin holds as well. The owner makes the segments.
#pragma once
#include <vector>

#include "codecs/reduction/shared_history.h"

namespace longhaul::reduction {

inline constexpr std::uint32_t kSealBytes = 4u << 20;  // size of a segment, if enough is available

class FreshHistory {
 public:
  void add(Interval block) { fresh_.add(block); }
  void clear() { fresh_ = {}; }

  // The ranges for segments, which are no longer fresh afterwards: of kSealBytes, or up to the ring's end;
  // with `rest`, and if they will soon be out of reach, also shorter ones. Acknowledgements since the last
  // search pay for the next one: without enough of them the result is empty.
  enum class Rest { stays, sealed };
  std::vector<Interval> take(const SharedHistory& shared, std::uint64_t ring_bytes, Rest rest);

 private:
  IntervalSet fresh_;
  // Total bytes answered by the twin at the last search.
  std::uint64_t searched_at_ = 0, rest_searched_at_ = 0;
};

}  // namespace longhaul::reduction
