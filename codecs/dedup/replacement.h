// SPDX-License-Identifier: Apache-2.0
// Which of a bucket's four entries a new one replaces, if any: each has a claim to be replaced, and the
// highest wins. fingerprint_index_avx512.cc applies the same rule with other instructions.
#pragma once
#include "codecs/dedup/fingerprint_table.h"

namespace longhaul::dedup {

struct Replacement {
  // The bit of a tag that says "stays longer".
  static constexpr unsigned kPreferredBit = 6;
  static constexpr std::uint32_t kPreferred = 1u << kPreferredBit;
  static_assert(kPreferred == FingerprintTable::kPlanes);

  // A claim: the same, empty, too old, ordinary, preferred; then by age, in steps of 32 bytes.
  static constexpr std::uint32_t kOrdinary = 1u << 29, kDead = 1u << 30, kEmpty = 1u << 31, kSame = 7u << 29;
  static constexpr unsigned kAgeStep = 3;

  // The age from which entries are too old, as highest_claim() wants it.
  static std::uint32_t oldest(std::uint64_t ring_bytes) { return Bucket::place_of(ring_bytes); }

  // The highest claim of an entry of `into`; the way of that entry in its lowest bits.
  __attribute__((always_inline)) static inline std::uint32_t highest_claim(const Bucket& into,
                                                                           Fingerprint print,
                                                                           std::uint64_t offset,
                                                                           std::uint32_t oldest) {
    using Four = Bucket::Four;
    constexpr auto all = &Bucket::all_ways;
    const Four age = all(Bucket::place_of(offset)) - into.places;
    const Four empty = into.places == all(0);
    Four claim = age >> kAgeStep;
    claim |= ((into.tags & all(kPreferred << Bucket::kLowBits)) == all(0)) & all(kOrdinary);
    claim |= (age > all(oldest)) & all(kDead);
    claim = (claim & ~empty) | (empty & all(kEmpty));
    claim |= into.same(print) & all(kSame);
    // The lowest bits hold the number of the way, so that the maximum also tells which way it is.
    claim = (claim & all(~(Bucket::kWays - 1))) | Four{0, 1, 2, 3};
    claim = higher(claim, __builtin_shufflevector(claim, claim, 2, 3, 0, 1));
    claim = higher(claim, __builtin_shufflevector(claim, claim, 1, 0, 3, 2));
    return claim[0];
  }
  static unsigned way(std::uint32_t claim) { return claim % Bucket::kWays; }
  // Whether the new entry is left out: an ordinary one replaces no preferred one that is still of use.
  static bool leaves_out(std::uint32_t claim, Fingerprint print) {
    return claim < kOrdinary && !(print.tag & kPreferred);
  }

  // The way for an entry that is usable later than those that are there. If two have the same fingerprint,
  // the newer one is replaced, because the older one is usable earlier; otherwise the oldest of all.
  static unsigned way_beside(const Bucket& into, Fingerprint print, std::uint64_t offset) {
    const Bucket::Four equal = into.same(print);
    const Bucket::Four age = Bucket::all_ways(Bucket::place_of(offset)) - into.places;
    unsigned equals = 0, newest = 0, oldest = Bucket::kWays;
    for (unsigned way = 0; way < Bucket::kWays; ++way) {
      if (equal[way]) {
        if (equals++ == 0 || age[way] < age[newest]) newest = way;
      } else if (oldest == Bucket::kWays || into.places[way] == 0 ||
                 (into.places[oldest] != 0 && age[way] > age[oldest])) {
        oldest = way;
      }
    }
    return equals > 1 || oldest == Bucket::kWays ? newest : oldest;
  }

 private:
  static Bucket::Four higher(Bucket::Four a, Bucket::Four b) { return a > b ? a : b; }
};

}  // namespace longhaul::dedup
