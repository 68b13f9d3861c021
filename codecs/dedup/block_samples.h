// SPDX-License-Identifier: Apache-2.0
// The samples of one block: where they are, where the index has seen their 32 bytes, and which of them it
// remembers. match_finder.h compares the bytes there.
#pragma once
#include <vector>

#include "codecs/dedup/fingerprint_index.h"
#include "codecs/dedup/history_ring.h"
#include "codecs/dedup/references.h"

namespace longhaul::dedup {

// Positions are relative to the block; those of samples may be negative, where a window begins in the bytes
// before it.
class BlockSamples {
 public:
  // Samples nearer than this to the edge of a copy are remembered at their new place, so that the next block
  // finds the history with this very edit. Samples farther inside stay at their old place, which every stream
  // may use already.
  static constexpr std::uint32_t kEdge = 512;
  // Instead of a candidate: there is one, but it may not be used yet.
  static constexpr std::uint64_t kWaiting = 1;

  // Takes one sample in 64, halved this many times. The others outlive this; one block at a time in a thread.
  BlockSamples(const Kernels& kernels, FingerprintIndex& index, const HistoryRing& ring, std::uint64_t offset,
               std::size_t size, unsigned halvings);

  // Samples the part of [from, to) that was not sampled yet.
  void sample(std::int64_t from, std::int64_t to);
  void sample_all() { sample(first_, end_); }
  // Looks up the samples that were not looked up yet.
  void look_up();
  // Up to here positions were sampled, or skipped; of those before end().
  std::int64_t sampled() const { return sampled_; }
  std::int64_t end() const { return end_; }

  // ---- Those that were taken, in order.
  std::size_t size() const { return samples_; }
  std::int64_t position(std::size_t sample) const {
    return first_ + std::int64_t{scratch_.positions[sample]};
  }
  // Where its bytes probably are in the history; 0: nowhere.
  std::uint64_t candidate(std::size_t sample) const { return scratch_.candidates[sample]; }
  // The one before `candidate`, which may not be used yet; 0: none.
  std::uint64_t older(std::size_t sample, std::uint64_t candidate);

  // ---- For later blocks.
  // Samples deep inside a copy are found through the source of the copy, unless that is before `lasts_from`.
  void remember(const std::vector<Copy>& copies, std::uint64_t lasts_from);
  void remember_all();
  // Without replacing those that are remembered.
  void remember_beside();

 private:
  // Room for a block's samples: one per thread, so that an idle finder holds nothing.
  struct Scratch {
    std::vector<std::uint32_t> positions;
    std::vector<Fingerprint> prints;
    std::vector<std::uint64_t> candidates;
    void make_room(std::size_t samples);
  };
  static Scratch& scratch();

  std::size_t first_sample_at(std::int64_t position, std::size_t from) const;
  std::size_t keep(std::size_t from, std::size_t to, std::size_t kept);

  const Kernels& kernels_;
  FingerprintIndex& index_;
  const HistoryRing& ring_;
  const std::uint64_t offset_;
  const std::uint32_t size_;
  const std::byte* const block_;
  const unsigned halvings_;
  Scratch& scratch_;
  std::size_t samples_ = 0, looked_up_ = 0;  // how many of the scratch space's are this block's
  std::int64_t first_ = 0;  // the first position that may be sampled; positions count from here
  std::int64_t end_ = 0;    // one past the last one
  std::int64_t sampled_ = 0;
  bool waiting_ = false;  // some candidate is kWaiting
};

}  // namespace longhaul::dedup
