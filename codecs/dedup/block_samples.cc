// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/block_samples.h"

#include <algorithm>

namespace longhaul::dedup {
namespace {

// Prefetches the history that a copy from here would be compared with: mostly its first 500 bytes are read,
// and memory delivers ten lines in little more than the time of one.
__attribute__((always_inline)) inline void fetch(const std::byte* candidate) {
  for (int line = -2; line <= 8; ++line) __builtin_prefetch(candidate + 64 * line);
}

}  // namespace

void BlockSamples::Scratch::make_room(std::size_t samples) {
  if (samples <= positions.size()) return;
  samples = std::max(samples, 2 * positions.size());
  positions.resize(samples);
  prints.resize(samples);
  candidates.resize(samples);
}

BlockSamples::Scratch& BlockSamples::scratch() {
  thread_local Scratch scratch;
  return scratch;
}

BlockSamples::BlockSamples(const Kernels& kernels, FingerprintIndex& index, const HistoryRing& ring,
                           std::uint64_t offset, std::size_t size, unsigned halvings)
    : kernels_(kernels),
      index_(index),
      ring_(ring),
      offset_(offset),
      size_(static_cast<std::uint32_t>(size)),
      block_(ring.read(offset, size).data()),
      halvings_(halvings),
      scratch_(scratch()) {
  // Windows may begin in the previous block, if that is adjacent in memory.
  const std::uint64_t lap = offset - offset % ring.size();
  first_ = -static_cast<std::int64_t>(
      std::min<std::uint64_t>(kKeyBytes - 1, offset - std::max(lap, ring.floor())));
  end_ = std::int64_t{size_} - std::int64_t{kKeyBytes - 1};
  sampled_ = first_;
}

void BlockSamples::sample(std::int64_t from, std::int64_t to) {
  from = std::max(from, sampled_);
  to = std::min(to, end_);
  if (from >= to) return;
  sampled_ = to;
  const auto count = static_cast<std::size_t>(to - from);
  scratch_.make_room(samples_ + sample_room(count));
  std::uint32_t* const positions = scratch_.positions.data() + samples_;
  std::size_t samples = kernels_.sample(block_ + from, count, positions);
  samples =
      index_.fingerprints(block_ + from, {positions, samples}, scratch_.prints.data() + samples_, halvings_);
  for (std::size_t i = 0; i < samples; ++i) positions[i] += static_cast<std::uint32_t>(from - first_);
  samples_ += samples;
}

void BlockSamples::look_up() {
  const std::size_t fresh = samples_ - looked_up_;
  index_.newest(std::span<const Fingerprint>(scratch_.prints).subspan(looked_up_, fresh), offset_,
                scratch_.candidates.data() + looked_up_);
  for (std::uint64_t& candidate : std::span(scratch_.candidates).subspan(looked_up_, fresh)) {
    if (candidate == 0) continue;
    if (ring_.holds(candidate, kKeyBytes)) {
      fetch(ring_.read(candidate, kKeyBytes).data());
    } else {
      candidate = 0;
    }
  }
  looked_up_ = samples_;
}

std::uint64_t BlockSamples::older(std::size_t sample, std::uint64_t candidate) {
  scratch_.candidates[sample] = kWaiting;
  waiting_ = true;
  const std::uint64_t older = index_.newest(scratch_.prints[sample], candidate);
  return older != 0 && ring_.holds(older, kKeyBytes) ? older : 0;
}

void BlockSamples::remember(const std::vector<Copy>& copies, std::uint64_t lasts_from) {
  std::size_t from = 0, kept = 0;
  for (const Copy& copy : copies) {
    const std::int64_t end = std::int64_t{copy.position} + copy.length;
    const std::int64_t known_from = copy.position == 0 ? first_ : copy.position + std::int64_t{kEdge};
    const std::int64_t known_to = end - std::int64_t{kKeyBytes} - (end == size_ ? 0 : kEdge);
    if (known_from > known_to || copy.source < lasts_from) continue;  // the usual case
    const std::size_t begin = first_sample_at(known_from, from);
    kept = keep(from, begin, kept);
    from = first_sample_at(known_to + 1, begin);
  }
  samples_ = keep(from, samples_, kept);
  remember_all();
}

void BlockSamples::remember_all() {
  index_.insert(std::span(scratch_.prints).first(samples_), std::span(scratch_.positions).first(samples_),
                offset_ + static_cast<std::uint64_t>(first_));
}

void BlockSamples::remember_beside() {
  for (std::size_t i = 0; i < samples_; ++i)
    index_.insert_beside(scratch_.prints[i], offset_ + static_cast<std::uint64_t>(position(i)));
}

// The first sample from number `from` on with at least that position.
std::size_t BlockSamples::first_sample_at(std::int64_t position, std::size_t from) const {
  const auto begin = scratch_.positions.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(samples_);
  const auto found = std::lower_bound(begin + static_cast<std::ptrdiff_t>(from), end, position - first_);
  return static_cast<std::size_t>(found - begin);
}

// Moves samples [from, to) behind the first `kept` ones and returns the new number of those. Samples that
// wait for an older entry go into the index at once.
std::size_t BlockSamples::keep(std::size_t from, std::size_t to, std::size_t kept) {
  if (!waiting_) {
    const auto move = [&](auto& samples) {
      const auto begin = samples.begin();
      std::copy(begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(to),
                begin + static_cast<std::ptrdiff_t>(kept));
    };
    if (from != kept) move(scratch_.prints), move(scratch_.positions);
    return kept + to - from;
  }
  for (std::size_t i = from; i < to; ++i) {
    if (scratch_.candidates[i] == kWaiting) {
      index_.insert_beside(scratch_.prints[i], offset_ + static_cast<std::uint64_t>(position(i)));
      continue;
    }
    scratch_.prints[kept] = scratch_.prints[i];
    scratch_.positions[kept++] = scratch_.positions[i];
  }
  return kept;
}

}  // namespace longhaul::dedup
