// SPDX-License-Identifier: Apache-2.0
// Segments in the making, one after the other. Passing blocks earn the bytes of work that may be done for
// them, so that sealing keeps up and no block waits for more than a part of a segment. The owner stores the
// results.
#pragma once
#include <deque>
#include <optional>

#include "codecs/dedup/sampler.h"
#include "codecs/reduction/fresh_history.h"
#include "codecs/reduction/sealing.h"

namespace longhaul::reduction {

class SealingQueue {
 public:
  // The histories of what this side and the twin send; null without one.
  struct Rings {
    const dedup::HistoryRing *own = nullptr, *twin = nullptr;
  };
  // Work for one session before others are served: about half a millisecond.
  static constexpr std::size_t kPerTurn = 1u << 20;

  // Dropped if too much waits already, in relation to a ring of this size.
  void add(SealingSegment::Of of, const SegmentName& name, std::uint64_t ring_bytes);
  void forget(SealingSegment::Of of);
  bool empty() const { return segments_.empty(); }

  // Works on up to `bytes`, and subtracts the work done. Returns a segment as soon as one is complete: the
  // owner calls again for the next. Those that cannot be made are dropped.
  struct Done {
    SealingSegment::Of of;
    SealingSegment::Sealed sealed;
  };
  std::optional<Done> go_on(const Rings& rings, std::size_t& bytes);

  // A block was sent or received.
  void earn(std::size_t plain_bytes) { earned_ += kSpeed * plain_bytes; }
  // As much work as was earned, at most one turn. Nothing is saved while nothing waits.
  std::size_t spend();

  // Nothing more will be sealed soon: releases the memory reserved for it.
  void release() { pool_.release(); }

 private:
  // Factor for the bytes in blocks.
  static constexpr std::size_t kSpeed = 3;

  std::deque<SealingSegment> segments_;
  std::uint64_t bytes_ = 0;  // of all of them
  std::size_t earned_ = 0;
  SlicePool pool_{kSealBytes + dedup::kOverread, 1};
};

}  // namespace longhaul::reduction
