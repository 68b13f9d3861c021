// SPDX-License-Identifier: Apache-2.0
// A segment in the making: copied from a history, hashed and sampled in small pieces, so that a segment of
// megabytes never delays blocks. The owner chooses the range and stores the result.
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
  enum class Of { own, twin };  // the source: the encoder's history, or the decoder's

  // `name.length` bytes from `name.first` on. For this side's own history the digest is computed here;
  // otherwise the name has the digest that the bytes must match.
  SealingSegment(Of of, const SegmentName& name);
  ~SealingSegment();
  SealingSegment(SealingSegment&&) noexcept;
  SealingSegment& operator=(SealingSegment&&) noexcept;

  Of of() const { return of_; }
  std::size_t length() const { return name_.length; }
  std::size_t left() const { return name_.length - done_; }
  // Processes the next bytes, `most` (at least one) or the rest. Returns false if the history no longer holds
  // them.
  bool go_on(const dedup::HistoryRing* ring, std::size_t most, SlicePool& pool);

  // To be called once, when nothing is left. Returns nullopt if the bytes do not match the name's digest.
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
