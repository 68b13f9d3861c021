// SPDX-License-Identifier: Apache-2.0
// Finds the positions of 32-byte pieces in the history: a table of 8-byte entries that takes at most 64 MiB
// per GiB of history and grows with its contents. Answers are hints: the caller compares the bytes.
#pragma once
#include "codecs/dedup/lazy_memory.h"
#include "codecs/dedup/sampler.h"

namespace longhaul::dedup {

inline constexpr std::size_t kKeyBytes = 32;

// A key's hash: each of its 32-bit words plus one of these, modulo 2^32; the sum, modulo 2^64, of the
// products of each two neighbours (NH of UMAC, RFC 4418 section 5.2), then mixed by the factor. Eight
// keys are hashed by AVX-512 in the time of one. Never leaves this process.
inline constexpr std::uint32_t kKeyAddends[8] = {0x9e3779b9, 0x7f4a7c15, 0xf39cc060, 0x5cedc834,
                                                 0x1082276b, 0xf3a27251, 0xf86c6a11, 0xd0c18e95};
inline constexpr std::uint64_t kKeyFactor = 0x9fb21c651e98df25;

// What the index keeps of a key.
struct Fingerprint {
  std::uint32_t bucket = 0;  // scaled to the smallest table
  std::uint32_t tag = 0;     // 30 bits
};

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

  void clear();
  // Little room is left: only every second fingerprint is kept.
  bool full() const { return planes_ == kPlanes && entries_ > 3 * buckets_; }
  // The table's current size in memory.
  std::size_t bytes() const { return buckets_ * sizeof(Bucket); }
  std::size_t max_bytes() const { return memory_.size(); }

 private:
  // Four entries side by side, so that one instruction looks at all of them. An entry is 64 bits: in `tags`
  // the tag and the two lowest bits of the offset, in `places` the 32 above those; all zero is empty.
  using Four = std::uint32_t __attribute__((vector_size(16)));
  struct Bucket {
    Four tags;
    Four places;
  };
  static constexpr unsigned kWays = 4;
  static constexpr unsigned kLowBits = 2;
  static constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << (32 + kLowBits)) - 1;
  // The table grows bucket by bucket (linear hashing), from 1/64 of its full size: an idle peer costs little,
  // and the table never moves all at once. The six lowest bits of a tag tell which of 64 buckets of the full
  // table an entry belongs to.
  static constexpr std::uint32_t kPlanes = 64;
  // The bit of a tag that says "stays longer".
  static constexpr unsigned kPreferredBit = 6;
  static constexpr std::uint32_t kPreferred = 1u << kPreferredBit;
  static_assert(kPreferred == kPlanes);
  // It grows when there are more entries than this: buckets that are not split yet hold twice the average.
  std::uint64_t entries_for_size() const { return buckets_ + buckets_ / 2; }

  FingerprintIndex(LazyMemory memory, std::uint64_t ring_bytes, Vectors vectors)
      : memory_(std::move(memory)),
        vectors_(vectors),
        ring_bytes_(ring_bytes),
        base_(static_cast<std::uint32_t>(memory_.size() / sizeof(Bucket) / kPlanes)),
        buckets_(base_) {}

  // Each entry's claim to be replaced, the highest wins: the same, empty, too old, ordinary, preferred; then
  // by age, in steps of 32 bytes.
  static constexpr std::uint32_t kOrdinary = 1u << 29, kDead = 1u << 30, kEmpty = 1u << 31, kSame = 7u << 29;
  static constexpr unsigned kAgeStep = 3;

  class Wide;
  Fingerprint print_of(const std::byte* key) const;
  std::uint64_t newest_of(Fingerprint print, std::uint64_t before) const;
  // Return how many entries went into empty places.
  std::uint64_t put_all(std::span<const Fingerprint> prints, std::span<const std::uint32_t> positions,
                        std::uint64_t base);
  std::uint64_t put_by_avx2(std::span<const Fingerprint> prints, std::span<const std::uint32_t> positions,
                            std::uint64_t base);
  std::uint64_t put_by_avx512(std::span<const Fingerprint> prints, std::span<const std::uint32_t> positions,
                              std::uint64_t base);
  std::size_t fingerprints_by_avx512(const std::byte* data, std::span<std::uint32_t> positions,
                                     Fingerprint* out, std::uint32_t needed) const;
  void newest_by_avx512(std::span<const Fingerprint> prints, std::uint64_t before, std::uint64_t* out) const;
  Bucket* table() const { return reinterpret_cast<Bucket*>(memory_.data()); }
  Bucket& bucket(Fingerprint print) const {
    const std::uint64_t split =
        print.bucket + std::uint64_t{base_} * (print.tag & (2 * planes_ - 1) & (kPlanes - 1));
    // If that bucket does not exist yet, its entries are in the one that it will be split from. The choice is
    // unpredictable, so there is no branch.
    const std::uint64_t not_yet = std::uint64_t{0} - (split >= buckets_);
    return table()[split - (not_yet & (std::uint64_t{base_} * planes_))];
  }
  static Four all_ways(std::uint32_t value) { return Four{value, value, value, value}; }
  static Four same(const Bucket& bucket, Fingerprint print) {
    return (bucket.tags >> kLowBits) == all_ways(print.tag);
  }
  static Four higher(Four a, Four b) { return a > b ? a : b; }
  static std::uint32_t place_of(std::uint64_t offset) {
    return static_cast<std::uint32_t>(offset >> kLowBits);
  }
  static void write(Bucket& bucket, unsigned way, Fingerprint print, std::uint64_t offset) {
    bucket.tags[way] = print.tag << kLowBits | static_cast<std::uint32_t>(offset & ((1u << kLowBits) - 1));
    bucket.places[way] = place_of(offset);
  }
  // `added`: entries that went into empty places.
  void grow_to_fit(std::uint64_t added) {
    entries_ += added;
    while (entries_ > entries_for_size() && planes_ < kPlanes) grow();
  }
  void grow();

  LazyMemory memory_;
  Vectors vectors_;
  std::uint64_t ring_bytes_;
  std::uint32_t base_;         // buckets of the smallest table
  std::uint64_t buckets_;      // current number
  std::uint32_t planes_ = 1;   // a power of two; planes_ * base_ <= buckets_ < 2 * planes_ * base_
  std::uint64_t entries_ = 0;  // entries put into empty places
};

}  // namespace longhaul::dedup
