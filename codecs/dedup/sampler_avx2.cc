// SPDX-License-Identifier: Apache-2.0
// The loops of sampler.h for AVX2. Functions name their instruction sets themselves: with a flag for the
// whole file an inline function of a header could be compiled for AVX2 here and be called elsewhere.
#include "codecs/dedup/sampler.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define LONGHAUL_AVX2 __attribute__((target("avx2,bmi,bmi2,prfchw")))

namespace longhaul::dedup {
namespace {

LONGHAUL_AVX2 inline __m256i load(const std::byte* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

// The sums of the windows at every second position.
LONGHAUL_AVX2 inline __m256i sums(const std::byte* at) {
  const __m256i a = _mm256_mullo_epi16(load(at), _mm256_set1_epi16(static_cast<short>(kSampleFactors[0])));
  const __m256i b =
      _mm256_mullo_epi16(load(at + 2), _mm256_set1_epi16(static_cast<short>(kSampleFactors[1])));
  const __m256i c =
      _mm256_mullo_epi16(load(at + 4), _mm256_set1_epi16(static_cast<short>(kSampleFactors[2])));
  const __m256i d =
      _mm256_mullo_epi16(load(at + 6), _mm256_set1_epi16(static_cast<short>(kSampleFactors[3])));
  return _mm256_add_epi16(_mm256_add_epi16(a, b), _mm256_add_epi16(c, d));
}

LONGHAUL_AVX2 inline std::uint32_t equal(__m256i a, __m256i b) {
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, b)));
}

LONGHAUL_AVX2 inline std::uint32_t chosen(const std::byte* at) {
  const __m256i high = _mm256_set1_epi16(static_cast<short>(0xff00));
  const __m256i bits = _mm256_or_si256(_mm256_srli_epi16(sums(at), 8), _mm256_and_si256(sums(at + 1), high));
  return equal(_mm256_and_si256(bits, _mm256_set1_epi8(static_cast<char>(kSampleMask))),
               _mm256_set1_epi8(static_cast<char>(kSampleBits)));
}

LONGHAUL_AVX2 std::size_t sample(const std::byte* data, std::size_t count, std::uint32_t* out) {
  std::size_t samples = 0;
  std::size_t last = ~std::size_t{0} - kSampleDistance;
  for (std::size_t base = 0; base < count; base += 64) {
    __builtin_prefetch(data + base + kWrittenNext, 1);
    std::uint64_t mask = chosen(data + base) | std::uint64_t{chosen(data + base + 32)} << 32;
    if (count - base < 64) mask &= (std::uint64_t{1} << (count - base)) - 1;
    while (mask) {
      const std::size_t p = base + static_cast<std::size_t>(__builtin_ctzll(mask));
      mask &= mask - 1;
      out[samples] = static_cast<std::uint32_t>(p);
      samples += p - last >= kSampleDistance;
      last = p;
    }
  }
  return samples;
}

LONGHAUL_AVX2 std::size_t equal_ahead(const std::byte* a, const std::byte* b, std::size_t most) {
  for (std::size_t i = 0; i < most; i += 32) {
    const std::uint32_t differ = ~equal(load(a + i), load(b + i));
    if (differ == 0) continue;
    i += static_cast<unsigned>(__builtin_ctz(differ));
    return i < most ? i : most;
  }
  return most;
}

LONGHAUL_AVX2 std::size_t equal_behind(const std::byte* a, const std::byte* b, std::size_t most) {
  std::size_t i = 0;
  for (; i + 32 <= most; i += 32) {
    const std::uint32_t differ = ~equal(load(a - i - 32), load(b - i - 32));
    if (differ) return i + static_cast<unsigned>(__builtin_clz(differ));
  }
  while (i < most && a[-1 - std::ptrdiff_t(i)] == b[-1 - std::ptrdiff_t(i)]) ++i;
  return i;
}

LONGHAUL_AVX2 std::size_t equal_again(const std::byte* a, const std::byte* b, std::size_t most,
                                      unsigned run) {
  // Consecutive windows overlap, so that a run cut off at the end of one lies wholly in the next.
  for (std::size_t i = 0; i < most; i += 64 - run + 1) {
    std::uint64_t same =
        equal(load(a + i), load(b + i)) | std::uint64_t{equal(load(a + i + 32), load(b + i + 32))} << 32;
    if (most - i < 64) same &= (std::uint64_t{1} << (most - i)) - 1;
    const unsigned at = detail::first_run(same, run);
    if (at < 64) return i + at;
  }
  return most;
}

constexpr Kernels kAvx2{"avx2", Vectors::avx2, sample, equal_ahead, equal_behind, equal_again};

}  // namespace

const Kernels* detail::avx2_kernels() {
  static const bool here =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  return here ? &kAvx2 : nullptr;
}

}  // namespace longhaul::dedup

#else
const longhaul::dedup::Kernels* longhaul::dedup::detail::avx2_kernels() { return nullptr; }
#endif
