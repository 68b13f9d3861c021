// SPDX-License-Identifier: Apache-2.0
// The loops of sampler.h for AVX-512 with VBMI2 (Ice Lake, Zen 4 and later). Functions name their instruction
// sets themselves: with a flag for the whole file an inline function of a header could be compiled for
// AVX-512 here and be called elsewhere.
#include "codecs/dedup/sampler.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>

#define LONGHAUL_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi,bmi2,popcnt,prfchw")))

namespace longhaul::dedup {
namespace {

LONGHAUL_AVX512 inline __m512i load(const std::byte* at) { return _mm512_loadu_si512(at); }

// The sums of the windows at every second position.
LONGHAUL_AVX512 inline __m512i sums(const std::byte* at) {
  const __m512i a = _mm512_mullo_epi16(load(at), _mm512_set1_epi16(static_cast<short>(kSampleFactors[0])));
  const __m512i b =
      _mm512_mullo_epi16(load(at + 2), _mm512_set1_epi16(static_cast<short>(kSampleFactors[1])));
  const __m512i c =
      _mm512_mullo_epi16(load(at + 4), _mm512_set1_epi16(static_cast<short>(kSampleFactors[2])));
  const __m512i d =
      _mm512_mullo_epi16(load(at + 6), _mm512_set1_epi16(static_cast<short>(kSampleFactors[3])));
  return _mm512_add_epi16(_mm512_add_epi16(a, b), _mm512_add_epi16(c, d));
}

LONGHAUL_AVX512 std::size_t sample(const std::byte* data, std::size_t count, std::uint32_t* out) {
  const __m512i bits = _mm512_set1_epi8(static_cast<char>(kSampleBits));
  const __m512i mask = _mm512_set1_epi8(static_cast<char>(kSampleMask));
  alignas(64) std::uint8_t numbers[64];
  for (unsigned i = 0; i < 64; ++i) numbers[i] = static_cast<std::uint8_t>(i);
  const __m512i each = _mm512_load_si512(numbers);
  std::size_t samples = 0;
  // Which of the earlier positions were chosen: themselves, or one within the last 1, 3 and 7.
  std::uint64_t before = 0, before2 = 0, before4 = 0, before8 = 0;
  for (std::size_t base = 0; base < count; base += 64) {
    __builtin_prefetch(data + base + kWrittenNext, 1);
    // The upper byte of the sum at each position: even ones moved down, odd ones where they are.
    const __m512i upper = _mm512_mask_blend_epi8(0xaaaaaaaaaaaaaaaa, _mm512_srli_epi16(sums(data + base), 8),
                                                 sums(data + base + 1));
    std::uint64_t now = _mm512_testn_epi8_mask(_mm512_xor_si512(upper, bits), mask);
    if (count - base < 64) now &= (std::uint64_t{1} << (count - base)) - 1;
    const std::uint64_t now2 = now | (now << 1 | before >> 63);
    const std::uint64_t now4 = now2 | (now2 << 2 | before2 >> 62);
    const std::uint64_t now8 = now4 | (now4 << 4 | before4 >> 60);
    const std::uint64_t kept = now & ~(now8 << 1 | before8 >> 63);
    before = now;
    before2 = now2;
    before4 = now4;
    before8 = now8;
    // At most eight remain; stored without a branch on each, because such branches cost more than the sums.
    const __m128i where = _mm512_castsi512_si128(_mm512_maskz_compress_epi8(kept, each));
    const __m512i positions =
        _mm512_add_epi32(_mm512_cvtepu8_epi32(where), _mm512_set1_epi32(static_cast<int>(base)));
    _mm512_storeu_si512(out + samples, positions);
    samples += static_cast<std::size_t>(__builtin_popcountll(kept));
  }
  return samples;
}

LONGHAUL_AVX512 inline std::uint64_t differ(const std::byte* a, const std::byte* b) {
  return _mm512_cmpneq_epi8_mask(load(a), load(b));
}

LONGHAUL_AVX512 std::size_t equal_ahead(const std::byte* a, const std::byte* b, std::size_t most) {
  // Few copies of new data are longer than 128 bytes: one branch decides where these end.
  const std::uint64_t low = differ(a, b), high = differ(a + 64, b + 64);
  if (low | high) {
    const int at = low ? __builtin_ctzll(low) : 64 + __builtin_ctzll(high);
    return std::min(most, static_cast<std::size_t>(at));
  }
  std::size_t i = 128;
  // Four at a time from here: most of the important matches are long.
  for (; i < most && i < 256; i += 64) {
    if (const std::uint64_t mask = differ(a + i, b + i)) {
      i += static_cast<unsigned>(__builtin_ctzll(mask));
      return i < most ? i : most;
    }
  }
  for (; i + 256 <= most; i += 256) {
    const __m512i x = _mm512_xor_si512(load(a + i), load(b + i));
    const __m512i y = _mm512_xor_si512(load(a + i + 64), load(b + i + 64));
    const __m512i z = _mm512_xor_si512(load(a + i + 128), load(b + i + 128));
    const __m512i w = _mm512_xor_si512(load(a + i + 192), load(b + i + 192));
    const __m512i any = _mm512_or_si512(_mm512_or_si512(x, y), _mm512_or_si512(z, w));
    if (_mm512_test_epi64_mask(any, any)) break;
  }
  for (; i < most; i += 64) {
    if (const std::uint64_t mask = differ(a + i, b + i)) {
      i += static_cast<unsigned>(__builtin_ctzll(mask));
      return i < most ? i : most;
    }
  }
  return most;
}

LONGHAUL_AVX512 std::size_t equal_behind(const std::byte* a, const std::byte* b, std::size_t most) {
  for (std::size_t i = 0; i < most; i += 64) {
    const std::size_t left = most - i;
    // Bytes outside of the mask are not read.
    const std::uint64_t lanes = left < 64 ? ~std::uint64_t{0} << (64 - left) : ~std::uint64_t{0};
    const __m512i x = _mm512_maskz_loadu_epi8(lanes, a - i - 64);
    const __m512i y = _mm512_maskz_loadu_epi8(lanes, b - i - 64);
    if (const std::uint64_t mask = _mm512_cmpneq_epi8_mask(x, y))
      return i + static_cast<unsigned>(__builtin_clzll(mask));
  }
  return most;
}

// The first run that begins in the 64 bytes from `i` on, as far as visible there; `most` if there is none.
LONGHAUL_AVX512 inline std::size_t run_from(const std::byte* a, const std::byte* b, std::size_t i,
                                            std::size_t most, unsigned run) {
  std::uint64_t same = ~differ(a + i, b + i);
  if (most - i < 64) same &= (std::uint64_t{1} << (most - i)) - 1;
  const unsigned at = detail::first_run(same, run);
  return at < 64 ? i + at : most;
}

LONGHAUL_AVX512 std::size_t equal_again(const std::byte* a, const std::byte* b, std::size_t most,
                                        unsigned run) {
  // Fifteen bytes or more contain eight that begin at a multiple of eight: one comparison skips 64 bytes.
  const bool has_eight = run >= 15;
  // Consecutive windows overlap, so that a run cut off at the end of one lies wholly in the next.
  const std::size_t step = 64 - run + 1;
  for (std::size_t i = 0; i < most;) {
    if (has_eight && most - i >= 64 && !_mm512_cmpeq_epi64_mask(load(a + i), load(b + i))) {
      i += 64;
      continue;
    }
    // A new run has none of the eight that end before `i` completely.
    const std::size_t from = has_eight && i >= 7 ? i - 7 : i;
    const std::size_t to = std::min(most, has_eight ? i + 64 : i + 1);
    for (std::size_t at = from; at < to; at += step)
      if (const std::size_t found = run_from(a, b, at, most, run); found < most) return found;
    i += has_eight ? 64 : step;
  }
  return most;
}

constexpr Kernels kAvx512{"avx512", Vectors::avx512, sample, equal_ahead, equal_behind, equal_again};

}  // namespace

const Kernels* detail::avx512_kernels() {
  static const bool here = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
                           __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("bmi2");
  return here ? &kAvx512 : nullptr;
}

}  // namespace longhaul::dedup

#else
const longhaul::dedup::Kernels* longhaul::dedup::detail::avx512_kernels() { return nullptr; }
#endif
