// SPDX-License-Identifier: Apache-2.0
// The same arithmetic with GFNI on 64 bytes at a time: multiplying by a constant is a linear map of bits,
// which the affine instruction does for any polynomial. Debian's ISA-L has no such code yet (it came
// with 2.31).
#include <algorithm>
#include <array>
#include <bit>

#include "fec/field.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace longhaul::fec {

#ifdef __x86_64__
namespace {

#define LONGHAUL_GFNI __attribute__((target("gfni,avx512f,avx512bw")))

// The map x -> factor * x in the instruction's format: byte 7 - i has the bits of x whose sum is bit i.
const std::array<std::uint64_t, 256>& matrices() {
  static const auto computed = [] {
    std::array<std::uint64_t, 256> all{};
    for (unsigned factor = 0; factor < 256; ++factor)
      for (unsigned bit = 0; bit < 8; ++bit) {
        const std::uint8_t product =
            multiply(static_cast<std::uint8_t>(factor), static_cast<std::uint8_t>(1u << bit));
        for (unsigned i = 0; i < 8; ++i)
          if (product >> i & 1) all[factor] |= std::uint64_t{1} << (8 * (7 - i) + bit);
      }
    return all;
  }();
  return computed;
}

LONGHAUL_GFNI inline __m512i load(const std::uint8_t* at) { return _mm512_load_si512(at); }

LONGHAUL_GFNI void multiply_add(std::uint8_t* to, std::uint8_t factor, const std::uint8_t* from,
                                std::size_t bytes) {
  const __m512i matrix = _mm512_set1_epi64(static_cast<long long>(matrices()[factor]));
  for (std::size_t at = 0; at < bytes; at += 64)
    _mm512_store_si512(
        to + at, _mm512_xor_si512(load(to + at), _mm512_gf2p8affine_epi64_epi8(load(from + at), matrix, 0)));
}

LONGHAUL_GFNI inline __m512i times(__m512i bytes, std::uint64_t map) {
  __m512i matrix = _mm512_set1_epi64(static_cast<long long>(map));
#ifdef __clang__
  // LLVM before 20 writes a wrong displacement if this instruction reads its matrix from memory with
  // broadcast (https://github.com/llvm/llvm-project/pull/120340), so it reads a wrong matrix. From a register
  // the code is correct.
  asm("" : "+v"(matrix));
#endif
  return _mm512_gf2p8affine_epi64_epi8(bytes, matrix, 0);
}

// Adds a column of all sources to kRows accumulators of kWide vectors each, which stay in registers.
// Processes two sources at a time: one instruction adds three vectors, and additions compete with
// multiplications for the same units.
template <int kRows, int kWide>
LONGHAUL_GFNI void add_column(std::uint8_t* const* to, std::span<const std::uint8_t* const> from,
                              const std::uint64_t* maps, std::size_t at) {
  constexpr int kXor3 = 0x96;
  __m512i sum[kRows][kWide];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 8
    for (int w = 0; w < kWide; ++w) sum[i][w] = load(to[i] + at + 64 * w);
  std::size_t j = 0;
  for (; j + 2 <= from.size(); j += 2, maps += 2 * kRows) {
    __m512i first[kWide], second[kWide];
#pragma GCC unroll 8
    for (int w = 0; w < kWide; ++w) {
      first[w] = load(from[j] + at + 64 * w);
      second[w] = load(from[j + 1] + at + 64 * w);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 8
      for (int w = 0; w < kWide; ++w)
        sum[i][w] = _mm512_ternarylogic_epi64(sum[i][w], times(first[w], maps[i]),
                                              times(second[w], maps[kRows + i]), kXor3);
  }
  if (j < from.size())
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 8
      for (int w = 0; w < kWide; ++w)
        sum[i][w] = _mm512_xor_si512(sum[i][w], times(load(from[j] + at + 64 * w), maps[i]));
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 8
    for (int w = 0; w < kWide; ++w) _mm512_store_si512(to[i] + at + 64 * w, sum[i][w]);
}

template <int kRows>
void add_rows(std::uint8_t* const* to, std::span<const std::uint8_t* const> from, const std::uint8_t* factors,
              std::size_t stride, std::size_t bytes) {
  constexpr std::size_t kSources = 256;
  std::array<std::uint64_t, kRows * kSources> maps;
  const auto& matrix = matrices();
  while (!from.empty()) {
    const std::size_t sources = std::min(kSources, from.size());
    for (std::size_t j = 0; j < sources; ++j)
      for (std::size_t i = 0; i < kRows; ++i) maps[j * kRows + i] = matrix[factors[i * stride + j]];
    const auto part = from.first(sources);
    std::size_t at = 0;
    for (; at + 256 <= bytes; at += 256) add_column<kRows, 4>(to, part, maps.data(), at);
    for (; at + 64 <= bytes; at += 64) add_column<kRows, 1>(to, part, maps.data(), at);
    from = from.subspan(sources);
    factors += sources;
  }
}

void add_combinations(std::span<std::uint8_t* const> to, std::span<const std::uint8_t* const> from,
                      const std::uint8_t* factors, std::size_t bytes) {
  const std::size_t stride = from.size();
  for (std::size_t rows; !to.empty(); to = to.subspan(rows), factors += rows * stride) {
    rows = std::min<std::size_t>(4, to.size());
    switch (rows) {
      case 1:
        add_rows<1>(to.data(), from, factors, stride, bytes);
        break;
      case 2:
        add_rows<2>(to.data(), from, factors, stride, bytes);
        break;
      case 3:
        add_rows<3>(to.data(), from, factors, stride, bytes);
        break;
      default:
        add_rows<4>(to.data(), from, factors, stride, bytes);
        break;
    }
  }
}

constexpr Arithmetic kGfni{multiply_add, add_combinations};

}  // namespace

const Arithmetic* gfni() {
  static const bool here = __builtin_cpu_supports("gfni") && __builtin_cpu_supports("avx512bw");
  return here ? &kGfni : nullptr;
}

#else

const Arithmetic* gfni() { return nullptr; }

#endif

}  // namespace longhaul::fec
