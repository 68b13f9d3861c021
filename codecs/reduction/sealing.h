// SPDX-License-Identifier: Apache-2.0
// A segment in the making: copied out of a history, hashed and sampled in small pieces, so that a segment of
// megabytes never delays the blocks that come meanwhile. The owner chooses the range and stores the
// result.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "codecs/dedup/history_ring.h"
#include "codecs/reduction/disk_hooks.h"
#include "codecs/reduction/segments.h"
#include "codecs/slice_pool.h"

struct XXH3_state_s;

namespace longhaul::reduction {

class SealingSegment {
 public:
  enum class Of { own, twin };  // whose history: the encoder's, or the decoder's

  // `name.length` bytes from `name.first` on. Where the history is this side's own the name's digest is
  // filled in here; otherwise the name has the one that the bytes must have.
  SealingSegment(Of of, const SegmentName& name);
  ~SealingSegment();
  SealingSegment(SealingSegment&&) noexcept;
  SealingSegment& operator=(SealingSegment&&) noexcept;

  Of of() const { return of_; }
  std::size_t length() const { return name_.length; }
  std::size_t left() const { return name_.length - done_; }
  // Takes the next bytes, `most` (at least one) or what is left. False: the history does not hold them any
  // more.
  bool go_on(const dedup::HistoryRing* ring, std::size_t most, SlicePool& pool);

  // When nothing is left; once. Nothing: the bytes are not those that the name promises.
  struct Sealed {
    SegmentName name;
    Slice bytes;
    std::vector<Hook> hooks;
  };
  std::optional<Sealed> take();

 private:
  struct FreeState {
    void operator()(XXH3_state_s* state) const;
  };

  Of of_;
  SegmentName name_;
  std::size_t done_ = 0;
  Slice memory_;
  std::byte* room_ = nullptr;
  std::unique_ptr<XXH3_state_s, FreeState> digest_;
  std::size_t sampled_ = 0;
  std::vector<Hook> hooks_;
};

}  // namespace longhaul::reduction
