// SPDX-License-Identifier: Apache-2.0
// Finds the positions of 32-byte pieces in the history: a table of 8-byte entries that takes at most 64 MiB
// per GiB of history and grows with its contents. Answers are hints: the caller compares the bytes.
#pragma once
#include "codecs/dedup/fingerprint_table.h"
#include "codecs/dedup/key_hash.h"
#include "codecs/dedup/sampler.h"

namespace longhaul::dedup {

class FingerprintIndex {
 public:
  // Entries hold 34 bits of an offset: the offsets of two laps differ in them.
  static constexpr std::uint64_t kMaxRingBytes = std::uint64_t{1} << 33;

  // `ring_bytes`: a multiple of 64 KiB. `vectors`: the instructions to use; the answers are the same.
  static Result<FingerprintIndex> make(std::uint64_t ring_bytes, Vectors vectors = kernels().vectors);

  // The fingerprint of the 32 bytes at `key`.
  Fingerprint fingerprint(const std::byte* key) const;

  // Fingerprints of the 32 bytes at each position; prefetches the buckets for the lookups below. Drops half
  // of them, always the same ones, or three quarters; at least half if the table is full, because they would
  // soon be evicted. Compacts the remaining positions and returns their number.
  std::size_t fingerprints(const std::byte* data, std::span<std::uint32_t> positions, Fingerprint* out,
                           unsigned halvings) const;

  // The newest offset below `before` that was put in under this fingerprint and is at most a ring away; 0 if
  // there is none.
  std::uint64_t newest(Fingerprint print, std::uint64_t before) const;
  void newest(std::span<const Fingerprint> prints, std::uint64_t before, std::uint64_t* out) const;

  // Replaces an entry of the same fingerprint. In a full bucket the oldest goes, but every second fingerprint
  // (always the same ones) is preferred to the others. Positions count from `base`.
  void insert(std::span<const Fingerprint> prints, std::span<const std::uint32_t> positions,
              std::uint64_t base);
  void insert(Fingerprint print, std::uint64_t offset) {
    const std::uint32_t position = 0;
    insert({&print, 1}, {&position, 1}, offset);
  }
  // Keeps an existing entry of the same fingerprint: its history becomes usable earlier.
  void insert_beside(Fingerprint print, std::uint64_t offset);

  void clear() { table_.clear(); }
  // Little room is left: only every second fingerprint is kept.
  bool full() const { return table_.full(); }
  // The table's current size in memory.
  std::size_t bytes() const { return table_.bytes(); }
  std::size_t max_bytes() const { return table_.max_bytes(); }

 private:
  FingerprintIndex(FingerprintTable table, std::uint64_t ring_bytes, Vectors vectors)
      : table_(std::move(table)), vectors_(vectors), ring_bytes_(ring_bytes) {}

  FingerprintTable table_;
  Vectors vectors_;
  std::uint64_t ring_bytes_;
};

}  // namespace longhaul::dedup
