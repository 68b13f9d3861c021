// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/sampler.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace longhaul::dedup {
namespace {

static_assert(std::endian::native == std::endian::little, "words are compared by their lowest byte");

std::uint64_t load64(const std::byte* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// Eight words at once, which every x86-64 supports; on other machines the compiler translates it.
using Words = std::uint16_t __attribute__((vector_size(16)));
using Halves = std::uint64_t __attribute__((vector_size(16)));

Words sums(const std::byte* at) {
  Words sum{};
  for (std::size_t i = 0; i < 4; ++i) {
    Words words;
    std::memcpy(&words, at + 2 * i, sizeof words);
    sum += words * kSampleFactors[i];
  }
  return sum;
}

std::size_t sample(const std::byte* data, std::size_t count, std::uint32_t* out) {
  constexpr Words kMask = Words{} + std::uint16_t{kSampleMask << 8};
  constexpr Words kBits = Words{} + std::uint16_t{kSampleBits << 8};
  std::size_t samples = 0;
  std::size_t last = ~std::size_t{0} - kSampleDistance;  // the last chosen position, counted or not
  for (std::size_t base = 0; base < count; base += 16) {
    const Words even = (sums(data + base) & kMask) == kBits;
    const Words odd = (sums(data + base + 1) & kMask) == kBits;
    const auto any = reinterpret_cast<Halves>(even | odd);
    if (!(any[0] | any[1])) continue;
    for (std::size_t i = 0; i < 16 && base + i < count; ++i) {
      if (!(i % 2 ? odd[i / 2] : even[i / 2])) continue;
      out[samples] = static_cast<std::uint32_t>(base + i);
      samples += base + i - last >= kSampleDistance;
      last = base + i;
    }
  }
  return samples;
}

std::size_t equal_ahead(const std::byte* a, const std::byte* b, std::size_t most) {
  for (std::size_t i = 0; i < most; i += 8)
    if (const std::uint64_t differ = load64(a + i) ^ load64(b + i))
      return std::min(most, i + static_cast<std::size_t>(std::countr_zero(differ)) / 8);
  return most;
}

std::size_t equal_behind(const std::byte* a, const std::byte* b, std::size_t most) {
  std::size_t i = 0;
  for (; i + 8 <= most; i += 8)
    if (const std::uint64_t differ = load64(a - i - 8) ^ load64(b - i - 8))
      return i + static_cast<std::size_t>(std::countl_zero(differ)) / 8;
  while (i < most && a[-1 - std::ptrdiff_t(i)] == b[-1 - std::ptrdiff_t(i)]) ++i;
  return i;
}

std::size_t equal_again(const std::byte* a, const std::byte* b, std::size_t most, unsigned run) {
  std::size_t start = 0;
  for (std::size_t i = 0; i < most;) {
    if (a[i] != b[i]) {
      start = ++i;
    } else if (++i - start >= run) {
      return start;
    }
  }
  return most;
}

constexpr Kernels kPlain{"plain", Vectors::none, sample, equal_ahead, equal_behind, equal_again};

const Kernels* of(Vectors vectors) {
  switch (vectors) {
    case Vectors::avx512:
      return detail::avx512_kernels();
    case Vectors::avx2:
      return detail::avx2_kernels();
    case Vectors::none:
      break;
  }
  return &kPlain;
}

}  // namespace

bool available(Vectors vectors) { return of(vectors) != nullptr; }

const Kernels& kernels(Vectors vectors) {
  const Kernels* chosen = of(vectors);
  assert(chosen);
  return *chosen;
}

const Kernels& kernels() {
  static const Kernels& best = available(Vectors::avx512) ? kernels(Vectors::avx512)
                               : available(Vectors::avx2) ? kernels(Vectors::avx2)
                                                          : kPlain;
  return best;
}

}  // namespace longhaul::dedup
