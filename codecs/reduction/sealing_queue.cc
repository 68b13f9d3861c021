// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/sealing_queue.h"

#include <algorithm>

namespace longhaul::reduction {
namespace {

// Copied and sampled while still in the processor's caches.
constexpr std::size_t kSealedAtOnce = 64u << 10;
// Blocks in either direction earn work on segments, up to this much.
constexpr std::size_t kMostEarned = 4u << 20;
constexpr std::size_t kMostWaiting = 4096;

}  // namespace

// An honest twin never has more than a history, or thousands of small pieces, waiting at once. The rest is
// dropped.
void SealingQueue::add(SealingSegment::Of of, const SegmentName& name, std::uint64_t ring_bytes) {
  if (segments_.size() >= kMostWaiting || bytes_ > 2 * ring_bytes) return;
  segments_.emplace_back(of, name);
  bytes_ += name.length;
}

void SealingQueue::forget(SealingSegment::Of of) {
  std::erase_if(segments_, [&](const SealingSegment& one) {
    if (one.of() == of) bytes_ -= one.length();
    return one.of() == of;
  });
}

std::optional<SealingQueue::Done> SealingQueue::go_on(const Rings& rings, std::size_t& bytes) {
  while (!segments_.empty() && bytes > 0) {
    SealingSegment& next = segments_.front();
    const SealingSegment::Of of = next.of();
    const std::size_t left = next.left();
    const bool here = next.go_on(of == SealingSegment::Of::own ? rings.own : rings.twin,
                                 std::min(bytes, kSealedAtOnce), pool_);
    bytes -= std::min(bytes, left - next.left());
    if (here && next.left() > 0) continue;
    auto sealed = here ? next.take() : std::nullopt;
    bytes_ -= next.length();
    segments_.pop_front();
    if (sealed) return Done{of, std::move(*sealed)};
  }
  return std::nullopt;
}

std::size_t SealingQueue::spend() {
  earned_ = segments_.empty() ? 0 : std::min(earned_, kMostEarned);
  const std::size_t bytes = std::min(earned_, kPerTurn);
  earned_ -= bytes;
  return bytes;
}

}  // namespace longhaul::reduction
