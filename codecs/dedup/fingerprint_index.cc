// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/fingerprint_index.h"

#include <algorithm>
#include <cstring>

namespace longhaul::dedup {

Result<FingerprintIndex> FingerprintIndex::make(std::uint64_t ring_bytes, Vectors vectors) {
  if (ring_bytes == 0 || ring_bytes % 65'536 != 0 || ring_bytes > kMaxRingBytes)
    return make_error_code(boost::system::errc::invalid_argument);
  auto memory = LazyMemory::make(ring_bytes / 16);
  if (!memory) return memory.error();
  return FingerprintIndex(std::move(*memory), ring_bytes, vectors);
}

inline Fingerprint FingerprintIndex::print_of(const std::byte* key) const {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < std::size(kKeyAddends); i += 2) {
    std::uint32_t words[2];
    std::memcpy(words, key + 4 * i, sizeof words);
    hash += std::uint64_t{words[0] + kKeyAddends[i]} * (words[1] + kKeyAddends[i + 1]);
  }
  hash ^= hash >> 31;
  hash *= kKeyFactor;
  hash ^= hash >> 32;
  return {static_cast<std::uint32_t>((hash & 0xffffffff) * base_ >> 32),
          static_cast<std::uint32_t>(hash >> 34)};
}

Fingerprint FingerprintIndex::fingerprint(const std::byte* key) const { return print_of(key); }

std::size_t FingerprintIndex::fingerprints(const std::byte* data, std::span<std::uint32_t> positions,
                                           Fingerprint* out, unsigned halvings) const {
  if (full()) halvings = std::max(halvings, 1u);
  const std::uint32_t needed = ((1u << halvings) - 1) << kPreferredBit;
#if defined(__x86_64__)
  if (vectors_ == Vectors::avx512) return fingerprints_by_avx512(data, positions, out, needed);
#endif
  std::size_t count = 0;
  for (const std::uint32_t position : positions) {
    out[count] = print_of(data + position);
    positions[count] = position;
    const bool kept = (out[count].tag & needed) == needed;
    // Not into the first cache: it is too small for them, and the CPU can wait for only a few such fetches at
    // a time.
    __builtin_prefetch(kept ? static_cast<const void*>(&bucket(out[count])) : out, 0, 2);
    count += kept;
  }
  return count;
}

inline std::uint64_t FingerprintIndex::newest_of(Fingerprint print, std::uint64_t before) const {
  const Bucket& found = bucket(print);
  const Four equal = same(found, print);
  using Two = std::uint64_t __attribute__((vector_size(16)));
  const Two any = reinterpret_cast<Two>(equal);
  if (!(any[0] | any[1])) return 0;
  std::uint64_t best = ring_bytes_ + 1;
  for (unsigned way = 0; way < kWays; ++way) {
    if (!equal[way]) continue;
    const std::uint64_t offset =
        std::uint64_t{found.places[way]} << kLowBits | (found.tags[way] & ((1u << kLowBits) - 1));
    const std::uint64_t age = (before - offset) & kOffsetMask;
    if (age != 0) best = std::min(best, age);
  }
  return best <= ring_bytes_ && best < before ? before - best : 0;
}

std::uint64_t FingerprintIndex::newest(Fingerprint print, std::uint64_t before) const {
  return newest_of(print, before);
}

void FingerprintIndex::newest(std::span<const Fingerprint> prints, std::uint64_t before,
                              std::uint64_t* out) const {
#if defined(__x86_64__)
  if (vectors_ == Vectors::avx512) return newest_by_avx512(prints, before, out);
#endif
  for (const Fingerprint print : prints) *out++ = newest_of(print, before);
}

inline __attribute__((always_inline)) std::uint64_t FingerprintIndex::put_all(
    std::span<const Fingerprint> prints, std::span<const std::uint32_t> positions, std::uint64_t base) {
  // Without branches, because none of them could be predicted.
  constexpr std::size_t kAhead = 8;
  std::uint64_t added = 0;
  const Four oldest = all_ways(static_cast<std::uint32_t>(ring_bytes_ >> kLowBits));
  for (std::size_t i = 0; i < prints.size(); ++i) {
    if (i + kAhead < prints.size()) __builtin_prefetch(&bucket(prints[i + kAhead]), 1);
    const Fingerprint print = prints[i];
    const std::uint64_t offset = base + positions[i];
    Bucket& into = bucket(print);
    const Four age = all_ways(place_of(offset)) - into.places;
    const Four empty = into.places == all_ways(0);
    Four claim = age >> kAgeStep;
    claim |= ((into.tags & all_ways(kPreferred << kLowBits)) == all_ways(0)) & all_ways(kOrdinary);
    claim |= (age > oldest) & all_ways(kDead);
    claim = (claim & ~empty) | (empty & all_ways(kEmpty));
    claim |= same(into, print) & all_ways(kSame);
    // The lowest bits hold the number of the way, so that the maximum also tells which way it is.
    claim = (claim & all_ways(~(kWays - 1))) | Four{0, 1, 2, 3};
    claim = higher(claim, __builtin_shufflevector(claim, claim, 2, 3, 0, 1));
    claim = higher(claim, __builtin_shufflevector(claim, claim, 1, 0, 3, 2));
    const std::uint32_t most = claim[0];
    if (most < kOrdinary && !(print.tag & kPreferred)) continue;
    added += into.places[most % kWays] == 0;
    write(into, most % kWays, print, offset);
  }
  return added;
}

#if defined(__x86_64__)
// The same with instructions for unsigned comparison and maximum, which need no copies.
__attribute__((target("avx2,bmi,bmi2"))) std::uint64_t FingerprintIndex::put_by_avx2(
    std::span<const Fingerprint> prints, std::span<const std::uint32_t> positions, std::uint64_t base) {
  return put_all(prints, positions, base);
}
#endif

void FingerprintIndex::insert(std::span<const Fingerprint> prints, std::span<const std::uint32_t> positions,
                              std::uint64_t base) {
#if defined(__x86_64__)
  grow_to_fit(vectors_ == Vectors::avx512 ? put_by_avx512(prints, positions, base)
              : vectors_ == Vectors::avx2 ? put_by_avx2(prints, positions, base)
                                          : put_all(prints, positions, base));
#else
  grow_to_fit(put_all(prints, positions, base));
#endif
}

void FingerprintIndex::insert_beside(Fingerprint print, std::uint64_t offset) {
  Bucket& into = bucket(print);
  const Four equal = same(into, print);
  const Four age = all_ways(place_of(offset)) - into.places;
  // If both exist the newer one is replaced, because the older one is usable earlier. Otherwise the oldest of
  // all.
  unsigned equals = 0, newest = 0, oldest = kWays;
  for (unsigned way = 0; way < kWays; ++way) {
    if (equal[way]) {
      if (equals++ == 0 || age[way] < age[newest]) newest = way;
    } else if (oldest == kWays || into.places[way] == 0 ||
               (into.places[oldest] != 0 && age[way] > age[oldest])) {
      oldest = way;
    }
  }
  const unsigned way = equals > 1 || oldest == kWays ? newest : oldest;
  const bool added = into.places[way] == 0;
  write(into, way, print, offset);
  grow_to_fit(added);
}

void FingerprintIndex::grow() {
  const std::uint64_t whole = std::uint64_t{planes_} * base_;
  Bucket& from = table()[buckets_ - whole];
  Bucket& to = table()[buckets_];
  const Four moved = (from.tags & all_ways(planes_ << kLowBits)) != all_ways(0);
  to = {from.tags & moved, from.places & moved};
  from = {from.tags & ~moved, from.places & ~moved};
  if (++buckets_ == 2 * whole) planes_ *= 2;
}

void FingerprintIndex::clear() {
  memory_.release(0, memory_.size());
  buckets_ = base_;
  planes_ = 1;
  entries_ = 0;
}

}  // namespace longhaul::dedup
