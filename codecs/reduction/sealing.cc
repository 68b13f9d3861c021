// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/sealing.h"

#include <xxhash.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "codecs/dedup/sampler.h"

namespace longhaul::reduction {

SealingSegment::SealingSegment(Of of, const SegmentName& name) : of_(of), name_(name) {
  digest_.reset(XXH3_createState());
  XXH3_128bits_reset(digest_.get());
}

SealingSegment::~SealingSegment() = default;
SealingSegment::SealingSegment(SealingSegment&&) noexcept = default;
SealingSegment& SealingSegment::operator=(SealingSegment&&) noexcept = default;
void SealingSegment::FreeState::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

bool SealingSegment::go_on(const dedup::HistoryRing* ring, std::size_t most, SlicePool& pool) {
  const std::size_t piece = std::min(most, left());
  if (!ring || !ring->holds(name_.first, name_.length)) return false;
  if (!room_) {
    const std::size_t needed = name_.length + dedup::kOverread;
    // A shorter segment must not hold the memory of a full one until it is written.
    memory_ = needed == pool.bytes() ? pool.take(room_) : Slice::unfilled(needed, room_);
    std::memset(room_ + name_.length, 0, dedup::kOverread);
  }
  const Bytes bytes = ring->read(name_.first + done_, piece);
  std::memcpy(room_ + done_, bytes.data(), piece);
  XXH3_128bits_update(digest_.get(), room_ + done_, piece);
  done_ += piece;
  sampled_ = find_hooks({room_, done_}, sampled_, left() == 0, hooks_);
  return true;
}

std::optional<SealingSegment::Sealed> SealingSegment::take() {
  assert(left() == 0);
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(digest_.get()));
  if (of_ == Of::twin && std::memcmp(name_.digest.data(), canonical.digest, name_.digest.size()) != 0)
    return std::nullopt;
  std::memcpy(name_.digest.data(), canonical.digest, name_.digest.size());
  return Sealed{name_, memory_.sub(0, name_.length), std::move(hooks_)};
}

}  // namespace longhaul::reduction
