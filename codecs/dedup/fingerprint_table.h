// SPDX-License-Identifier: Apache-2.0
// The memory of the fingerprint index: buckets of four entries, in a table that grows with its contents. It
// says in which bucket a fingerprint's entries are; which of them are found is fingerprint_index.h's concern,
// which are replaced replacement.h's.
#pragma once
#include "codecs/dedup/lazy_memory.h"

namespace longhaul::dedup {

// What the index keeps of a key.
struct Fingerprint {
  std::uint32_t bucket = 0;  // scaled to the smallest table
  std::uint32_t tag = 0;     // 30 bits
};

// Four entries side by side, so that one instruction looks at all of them. An entry is 64 bits: in `tags` the
// tag and the two lowest bits of the offset, in `places` the 32 above those; all zero is empty.
struct Bucket {
  using Four = std::uint32_t __attribute__((vector_size(16)));
  static constexpr unsigned kWays = 4;
  static constexpr unsigned kLowBits = 2;
  static constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << (32 + kLowBits)) - 1;

  static Four all_ways(std::uint32_t value) { return Four{value, value, value, value}; }
  static std::uint32_t place_of(std::uint64_t offset) {
    return static_cast<std::uint32_t>(offset >> kLowBits);
  }

  // All ones where an entry has this fingerprint.
  Four same(Fingerprint print) const { return (tags >> kLowBits) == all_ways(print.tag); }
  std::uint64_t offset(unsigned way) const {
    return std::uint64_t{places[way]} << kLowBits | (tags[way] & ((1u << kLowBits) - 1));
  }
  void write(unsigned way, Fingerprint print, std::uint64_t offset) {
    tags[way] = print.tag << kLowBits | static_cast<std::uint32_t>(offset & ((1u << kLowBits) - 1));
    places[way] = place_of(offset);
  }

  Four tags;
  Four places;
};

class FingerprintTable {
 public:
  // The table grows bucket by bucket (linear hashing), from 1/64 of its full size: an idle peer costs little,
  // and the table never moves all at once. The six lowest bits of a tag tell which of 64 buckets of the full
  // table an entry belongs to.
  static constexpr std::uint32_t kPlanes = 64;

  struct Shape {
    std::uint32_t base;        // buckets of the smallest table
    std::uint64_t buckets;     // current number
    std::uint32_t planes = 1;  // a power of two; planes * base <= buckets < 2 * planes * base

    // The number of the bucket that has this fingerprint's entries.
    std::uint64_t number_of(Fingerprint print) const {
      const std::uint64_t split =
          print.bucket + std::uint64_t{base} * (print.tag & (2 * planes - 1) & (kPlanes - 1));
      // If that bucket does not exist yet, its entries are in the one that it will be split from. The choice
      // is unpredictable, so there is no branch.
      const std::uint64_t not_yet = std::uint64_t{0} - (split >= buckets);
      return split - (not_yet & (std::uint64_t{base} * planes));
    }
  };

  // `max_bytes`: of the full table, a multiple of 4 KiB.
  static Result<FingerprintTable> make(std::size_t max_bytes);

  Fingerprint fingerprint(std::uint64_t hash) const {
    return {static_cast<std::uint32_t>((hash & 0xffffffff) * shape_.base >> 32),
            static_cast<std::uint32_t>(hash >> 34)};
  }

  const Shape& shape() const { return shape_; }
  Bucket* data() const { return reinterpret_cast<Bucket*>(memory_.data()); }
  Bucket& bucket(Fingerprint print) const { return data()[shape_.number_of(print)]; }

  // So many entries went into empty places: grows if there are too many for its size now.
  void grow_to_fit(std::uint64_t added) {
    entries_ += added;
    while (entries_ > entries_for_size() && shape_.planes < kPlanes) grow();
  }
  void clear();

  // It does not grow any more, and little room is left.
  bool full() const { return shape_.planes == kPlanes && entries_ > 3 * shape_.buckets; }
  // The current size in memory.
  std::size_t bytes() const { return shape_.buckets * sizeof(Bucket); }
  std::size_t max_bytes() const { return memory_.size(); }

 private:
  explicit FingerprintTable(LazyMemory memory)
      : memory_(std::move(memory)), shape_(smallest(memory_.size())) {}

  static Shape smallest(std::size_t max_bytes) {
    const auto base = static_cast<std::uint32_t>(max_bytes / sizeof(Bucket) / kPlanes);
    return {.base = base, .buckets = base};
  }
  // Buckets that are not split yet hold twice the average.
  std::uint64_t entries_for_size() const { return shape_.buckets + shape_.buckets / 2; }
  void grow();

  LazyMemory memory_;
  Shape shape_;
  std::uint64_t entries_ = 0;  // entries put into empty places
};

}  // namespace longhaul::dedup
