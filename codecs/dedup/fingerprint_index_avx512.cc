// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/fingerprint_index_avx512.h"

#if defined(__x86_64__)
// GCC 12 warns about its own header (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "codecs/dedup/key_hash.h"
#include "codecs/dedup/replacement.h"

#define LONGHAUL_AVX512                                                                   \
  __attribute__((                                                                         \
      target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi,bmi2,popcnt," \
             "prfchw")))

namespace longhaul::dedup::avx512 {
namespace {

LONGHAUL_AVX512 inline __m512i all(std::uint64_t value) {
  return _mm512_set1_epi64(static_cast<long long>(value));
}

LONGHAUL_AVX512 inline __m128i four(std::uint32_t value) {
  return reinterpret_cast<__m128i>(Bucket::all_ways(value));
}

LONGHAUL_AVX512 inline __mmask8 lanes_of(std::size_t left) {
  return static_cast<__mmask8>(left < 8 ? (1u << left) - 1 : 0xff);
}

LONGHAUL_AVX512 inline __m256i load32(const void* at) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(at));
}

// The four products of each of two keys.
LONGHAUL_AVX512 inline __m512i products(const std::byte* a, const std::byte* b) {
  const __m512i keys = _mm512_inserti64x4(_mm512_castsi256_si512(load32(a)), load32(b), 1);
  const __m512i sums = _mm512_add_epi32(keys, _mm512_broadcast_i64x4(load32(kKeyAddends)));
  return _mm512_mul_epu32(sums, _mm512_srli_epi64(sums, 32));
}

LONGHAUL_AVX512 inline __m512i sums_of_pairs(__m512i a, __m512i b) {
  return _mm512_add_epi64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

// The keys at eight positions, in order.
LONGHAUL_AVX512 inline __m512i hashes(const std::byte* data, const std::uint32_t (&at)[8]) {
  const __m512i ab =
      sums_of_pairs(products(data + at[0], data + at[4]), products(data + at[1], data + at[5]));
  const __m512i cd =
      sums_of_pairs(products(data + at[2], data + at[6]), products(data + at[3], data + at[7]));
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
  const __m512i second = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
  __m512i hash =
      _mm512_add_epi64(_mm512_permutex2var_epi64(ab, first, cd), _mm512_permutex2var_epi64(ab, second, cd));
  hash = _mm512_xor_si512(hash, _mm512_srli_epi64(hash, 31));
  hash = _mm512_mullo_epi64(hash, all(kKeyFactor));
  return _mm512_xor_si512(hash, _mm512_srli_epi64(hash, 32));
}

// Written out because the compiler does not unroll a loop of eight, which costs a sixth of the total. Always
// inlined: the compiler would drop calls to a function that only prefetches, as one without effect.
template <std::size_t... kLanes>
__attribute__((always_inline)) inline void fetch_all(const void* const (&lines)[8],
                                                     std::index_sequence<kLanes...>) {
  (__builtin_prefetch(lines[kLanes], 0, 2), ...);
}

// Finds the buckets of eight fingerprints, each 64 bits: the tag above the number in the smallest table.
class Wide {
 public:
  LONGHAUL_AVX512 explicit Wide(const FingerprintTable::Shape& shape)
      : base(all(shape.base)),
        buckets_(all(shape.buckets)),
        whole_(all(std::uint64_t{shape.base} * shape.planes)),
        planes_(all((2 * shape.planes - 1) & (FingerprintTable::kPlanes - 1))) {}

  // Their numbers, as Shape::number_of() has it.
  LONGHAUL_AVX512 __m512i buckets(__m512i prints) const {
    const __m512i plane = _mm512_and_si512(_mm512_srli_epi64(prints, 32), planes_);
    const __m512i smallest = _mm512_and_si512(prints, all(0xffffffff));
    const __m512i split = _mm512_add_epi64(smallest, _mm512_mul_epu32(base, plane));
    return _mm512_mask_sub_epi64(split, _mm512_cmpge_epu64_mask(split, buckets_), split, whole_);
  }

  const __m512i base;

 private:
  const __m512i buckets_, whole_, planes_;
};

}  // namespace

LONGHAUL_AVX512 std::size_t fingerprints(const FingerprintTable& table, const std::byte* data,
                                         std::span<std::uint32_t> positions, Fingerprint* out,
                                         std::uint32_t needed) {
  static_assert(sizeof(Fingerprint) == 8 && offsetof(Fingerprint, tag) == 4);
  const Wide wide(table.shape());
  const __m512i needed_tags = all(std::uint64_t{needed} << 32);
  const __m512i buckets = all(reinterpret_cast<std::uintptr_t>(table.data()));
  const __m512i nowhere = all(reinterpret_cast<std::uintptr_t>(out));
  std::size_t count = 0;
  for (std::size_t i = 0; i < positions.size(); i += 8) {
    const __mmask8 lanes = lanes_of(positions.size() - i);
    const __m256i where = _mm256_maskz_loadu_epi32(lanes, positions.data() + i);
    alignas(32) std::uint32_t at[8];  // zero if there is no question: the first place may be read as well
    _mm256_store_si256(reinterpret_cast<__m256i*>(at), where);
    const __m512i hash = hashes(data, at);
    const __m512i smallest = _mm512_srli_epi64(_mm512_mul_epu32(hash, wide.base), 32);
    const __m512i tag = _mm512_slli_epi64(_mm512_srli_epi64(hash, 34), 32);
    const __m512i print = _mm512_or_si512(tag, smallest);
    const __mmask8 kept =
        _mm512_mask_cmpeq_epi64_mask(lanes, _mm512_and_si512(print, needed_tags), needed_tags);
    static_assert(sizeof(Bucket) == 1 << 5);
    alignas(64) const void* lines[8];
    _mm512_store_si512(
        lines, _mm512_mask_add_epi64(nowhere, kept, buckets, _mm512_slli_epi64(wide.buckets(print), 5)));
    fetch_all(lines, std::make_index_sequence<8>());
    const auto found = static_cast<unsigned>(__builtin_popcount(kept));
    const auto low = static_cast<__mmask8>((1u << found) - 1);
    _mm512_mask_storeu_epi64(out + count, low, _mm512_maskz_compress_epi64(kept, print));
    _mm256_mask_storeu_epi32(positions.data() + count, low, _mm256_maskz_compress_epi32(kept, where));
    count += found;
  }
  return count;
}

// Without a branch on the results: of samples of new data anything between none and half are found.
LONGHAUL_AVX512 void newest(const FingerprintTable& table, std::uint64_t ring_bytes,
                            std::span<const Fingerprint> prints, std::uint64_t before, std::uint64_t* out) {
  if (before == 0) {
    std::fill_n(out, prints.size(), 0);
    return;
  }
  const Wide wide(table.shape());
  const __m256i last = _mm256_set1_epi64x(static_cast<long long>(before - 1));
  const __m256i offset_mask = _mm256_set1_epi64x(static_cast<long long>(Bucket::kOffsetMask));
  const __m256i low_mask = _mm256_set1_epi64x((1 << Bucket::kLowBits) - 1);
  for (std::size_t i = 0; i < prints.size(); i += 8) {
    const __mmask8 lanes = lanes_of(prints.size() - i);
    const __m512i print = _mm512_maskz_loadu_epi64(lanes, prints.data() + i);
    alignas(64) std::uint64_t numbers[8], ages[8];
    alignas(64) std::uint32_t tags[16];
    _mm512_store_si512(numbers, wide.buckets(print));
    _mm512_store_si512(tags, _mm512_srli_epi64(print, 32));
    for (unsigned lane = 0; lane < 8; ++lane) {
      const Bucket& bucket = table.data()[numbers[lane]];
      const __m128i entries = reinterpret_cast<__m128i>(bucket.tags);
      const __m256i places = _mm256_cvtepu32_epi64(reinterpret_cast<__m128i>(bucket.places));
      const __m256i offsets = _mm256_or_si256(_mm256_slli_epi64(places, Bucket::kLowBits),
                                              _mm256_and_si256(_mm256_cvtepu32_epi64(entries), low_mask));
      // One less than the age, so that an entry at `before` itself counts as the oldest of all.
      const __m256i age = _mm256_and_si256(_mm256_sub_epi64(last, offsets), offset_mask);
      const __mmask8 same = _mm_cmpeq_epi32_mask(_mm_srli_epi32(entries, Bucket::kLowBits),
                                                 _mm_set1_epi32(static_cast<int>(tags[2 * lane])));
      const __m256i claims = _mm256_mask_mov_epi64(_mm256_set1_epi64x(-1), same, age);
      const __m256i two = _mm256_min_epu64(claims, _mm256_permute4x64_epi64(claims, 0x4e));
      const __m256i one = _mm256_min_epu64(two, _mm256_permute4x64_epi64(two, 0xb1));
      ages[lane] = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm256_castsi256_si128(one)));
    }
    const __m512i age = _mm512_load_si512(ages);
    const __mmask8 held = _mm512_cmplt_epu64_mask(age, all(ring_bytes));
    const __mmask8 found = _mm512_mask_cmplt_epu64_mask(held, age, all(before - 1));
    _mm512_mask_storeu_epi64(out + i, lanes, _mm512_maskz_sub_epi64(found, all(before - 1), age));
  }
}

LONGHAUL_AVX512 std::uint64_t put(const FingerprintTable& table, std::uint64_t ring_bytes,
                                  std::span<const Fingerprint> prints,
                                  std::span<const std::uint32_t> positions, std::uint64_t base) {
  using R = Replacement;
  const Wide wide(table.shape());
  const auto oldest = four(R::oldest(ring_bytes));
  const auto preferred = four(R::kPreferred << Bucket::kLowBits);
  const auto ordinary = four(R::kOrdinary), dead = four(R::kDead);
  const auto same = four(R::kSame), empty = four(R::kEmpty);
  const auto numbers = reinterpret_cast<__m128i>(Bucket::Four{0, 1, 2, 3});
  constexpr int kFirstWithoutSecondOrThird = 0xba;
  std::uint64_t added = 0;
  // The buckets of the eight being inserted, and of the next eight, which are prefetched meanwhile.
  alignas(64) std::uint64_t at[2][8] = {};
  for (std::size_t next = 0; next < prints.size() + 8; next += 8) {
    if (next < prints.size()) {
      const __mmask8 lanes = lanes_of(prints.size() - next);
      auto& ahead = at[next / 8 % 2];
      _mm512_store_si512(ahead, wide.buckets(_mm512_maskz_loadu_epi64(lanes, prints.data() + next)));
      for (const std::uint64_t number : ahead) __builtin_prefetch(table.data() + number, 1);
    }
    if (next == 0) continue;
    const std::size_t first = next - 8, end = std::min(next, prints.size());
    for (std::size_t i = first; i < end; ++i) {
      const Fingerprint print = prints[i];
      Bucket& into = table.data()[at[first / 8 % 2][i - first]];
      const auto tags = reinterpret_cast<__m128i>(into.tags);
      const auto places = reinterpret_cast<__m128i>(into.places);
      const std::uint64_t offset = base + positions[i];
      const __m128i age = _mm_sub_epi32(four(Bucket::place_of(offset)), places);
      const __mmask8 same_tag = _mm_cmpeq_epi32_mask(_mm_srli_epi32(tags, Bucket::kLowBits), four(print.tag));
      __m128i claim = _mm_srli_epi32(age, R::kAgeStep);
      claim = _mm_mask_or_epi32(claim, _mm_testn_epi32_mask(tags, preferred), claim, ordinary);
      claim = _mm_mask_or_epi32(claim, _mm_cmpgt_epu32_mask(age, oldest), claim, dead);
      claim = _mm_mask_mov_epi32(claim, _mm_testn_epi32_mask(places, places), empty);
      claim = _mm_mask_or_epi32(claim, same_tag, claim, same);
      claim = _mm_ternarylogic_epi32(claim, four(Bucket::kWays - 1), numbers, kFirstWithoutSecondOrThird);
      claim = _mm_max_epu32(claim, _mm_shuffle_epi32(claim, 0x4e));
      claim = _mm_max_epu32(claim, _mm_shuffle_epi32(claim, 0xb1));
      const auto most = static_cast<std::uint32_t>(_mm_cvtsi128_si32(claim));
      if (R::leaves_out(most, print)) continue;
      added += into.places[R::way(most)] == 0;
      into.write(R::way(most), print, offset);
    }
  }
  return added;
}

}  // namespace longhaul::dedup::avx512
#endif
