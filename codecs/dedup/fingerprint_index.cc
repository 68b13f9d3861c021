// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/fingerprint_index.h"

#include <algorithm>

#include "codecs/dedup/fingerprint_index_avx512.h"
#include "codecs/dedup/replacement.h"

namespace longhaul::dedup {
namespace {

inline Fingerprint print_of(const FingerprintTable& table, const std::byte* key) {
  return table.fingerprint(key_hash(key));
}

inline std::uint64_t newest_of(const FingerprintTable& table, std::uint64_t ring_bytes, Fingerprint print,
                               std::uint64_t before) {
  const Bucket& found = table.bucket(print);
  const Bucket::Four equal = found.same(print);
  using Two = std::uint64_t __attribute__((vector_size(16)));
  const Two any = reinterpret_cast<Two>(equal);
  if (!(any[0] | any[1])) return 0;
  std::uint64_t best = ring_bytes + 1;
  for (unsigned way = 0; way < Bucket::kWays; ++way) {
    if (!equal[way]) continue;
    const std::uint64_t age = (before - found.offset(way)) & Bucket::kOffsetMask;
    if (age != 0) best = std::min(best, age);
  }
  return best <= ring_bytes && best < before ? before - best : 0;
}

// Returns how many entries went into empty places.
inline __attribute__((always_inline)) std::uint64_t put_all(const FingerprintTable& table,
                                                            std::uint64_t ring_bytes,
                                                            std::span<const Fingerprint> prints,
                                                            std::span<const std::uint32_t> positions,
                                                            std::uint64_t base) {
  // Without branches, because none of them could be predicted.
  constexpr std::size_t kAhead = 8;
  std::uint64_t added = 0;
  const std::uint32_t oldest = Replacement::oldest(ring_bytes);
  for (std::size_t i = 0; i < prints.size(); ++i) {
    if (i + kAhead < prints.size()) __builtin_prefetch(&table.bucket(prints[i + kAhead]), 1);
    const Fingerprint print = prints[i];
    const std::uint64_t offset = base + positions[i];
    Bucket& into = table.bucket(print);
    const std::uint32_t claim = Replacement::highest_claim(into, print, offset, oldest);
    if (Replacement::leaves_out(claim, print)) continue;
    const unsigned way = Replacement::way(claim);
    added += into.places[way] == 0;
    into.write(way, print, offset);
  }
  return added;
}

#if defined(__x86_64__)
// The same with instructions for unsigned comparison and maximum, which need no copies.
__attribute__((target("avx2,bmi,bmi2"))) std::uint64_t put_by_avx2(const FingerprintTable& table,
                                                                   std::uint64_t ring_bytes,
                                                                   std::span<const Fingerprint> prints,
                                                                   std::span<const std::uint32_t> positions,
                                                                   std::uint64_t base) {
  return put_all(table, ring_bytes, prints, positions, base);
}
#endif

}  // namespace

Result<FingerprintIndex> FingerprintIndex::make(std::uint64_t ring_bytes, Vectors vectors) {
  if (ring_bytes == 0 || ring_bytes % 65'536 != 0 || ring_bytes > kMaxRingBytes)
    return make_error_code(boost::system::errc::invalid_argument);
  auto table = FingerprintTable::make(ring_bytes / 16);
  if (!table) return table.error();
  return FingerprintIndex(std::move(*table), ring_bytes, vectors);
}

Fingerprint FingerprintIndex::fingerprint(const std::byte* key) const { return print_of(table_, key); }

std::size_t FingerprintIndex::fingerprints(const std::byte* data, std::span<std::uint32_t> positions,
                                           Fingerprint* out, unsigned halvings) const {
  if (full()) halvings = std::max(halvings, 1u);
  const std::uint32_t needed = ((1u << halvings) - 1) << Replacement::kPreferredBit;
#if defined(__x86_64__)
  if (vectors_ == Vectors::avx512) return avx512::fingerprints(table_, data, positions, out, needed);
#endif
  std::size_t count = 0;
  for (const std::uint32_t position : positions) {
    out[count] = print_of(table_, data + position);
    positions[count] = position;
    const bool kept = (out[count].tag & needed) == needed;
    // Not into the first cache: it is too small for them, and the CPU can wait for only a few such fetches at
    // a time.
    __builtin_prefetch(kept ? static_cast<const void*>(&table_.bucket(out[count])) : out, 0, 2);
    count += kept;
  }
  return count;
}

std::uint64_t FingerprintIndex::newest(Fingerprint print, std::uint64_t before) const {
  return newest_of(table_, ring_bytes_, print, before);
}

void FingerprintIndex::newest(std::span<const Fingerprint> prints, std::uint64_t before,
                              std::uint64_t* out) const {
#if defined(__x86_64__)
  if (vectors_ == Vectors::avx512) return avx512::newest(table_, ring_bytes_, prints, before, out);
#endif
  for (const Fingerprint print : prints) *out++ = newest_of(table_, ring_bytes_, print, before);
}

void FingerprintIndex::insert(std::span<const Fingerprint> prints, std::span<const std::uint32_t> positions,
                              std::uint64_t base) {
#if defined(__x86_64__)
  table_.grow_to_fit(vectors_ == Vectors::avx512 ? avx512::put(table_, ring_bytes_, prints, positions, base)
                     : vectors_ == Vectors::avx2 ? put_by_avx2(table_, ring_bytes_, prints, positions, base)
                                                 : put_all(table_, ring_bytes_, prints, positions, base));
#else
  table_.grow_to_fit(put_all(table_, ring_bytes_, prints, positions, base));
#endif
}

void FingerprintIndex::insert_beside(Fingerprint print, std::uint64_t offset) {
  Bucket& into = table_.bucket(print);
  const unsigned way = Replacement::way_beside(into, print, offset);
  const bool added = into.places[way] == 0;
  into.write(way, print, offset);
  table_.grow_to_fit(added);
}

}  // namespace longhaul::dedup
