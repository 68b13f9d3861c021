// SPDX-License-Identifier: Apache-2.0
// The loops over every byte, in three implementations of which the best for the CPU is chosen at run time:
// they choose the sampled positions, measure how long two pieces are equal, and find where they are equal
// again. All give the same results.
#pragma once
#include "codecs/bytes.h"

namespace longhaul::dedup {

// Loads are wide: every implementation may read kOverread bytes beyond its input (never uses them).
inline constexpr std::size_t kOverread = 192;

// One position in 64 on average: the first six bits of a sum over the eight bytes at it, of 16-bit words
// times odd numbers, modulo 2^16, equal kSampleBits. Zeros give zero and are not sampled. Of positions at
// most eight apart only the first counts, so that data with a short period is not sampled in every period.
inline constexpr std::size_t kSampleWindow = 8;
inline constexpr std::size_t kSamplePeriod = 64;
inline constexpr std::size_t kSampleDistance = 9;  // two samples are at least this far apart
inline constexpr std::uint16_t kSampleFactors[4] = {0x9e37, 0x6a09, 0xbb67, 0x3c6f};
inline constexpr std::uint8_t kSampleMask = 0xfc;
inline constexpr std::uint8_t kSampleBits = 0xb0;

// Memory at this distance after the sampled bytes is prefetched for writing: in a ring the next block will be
// written there, and the memory is loaded while the processor samples. Only a hint; the address may be
// invalid.
inline constexpr std::size_t kWrittenNext = 65'536;

// Room for the samples of `positions`: some implementations store a full vector at a time.
constexpr std::size_t sample_room(std::size_t positions) { return positions / kSampleDistance + 80; }

enum class Vectors { none, avx2, avx512 };

struct Kernels {
  const char* name;
  Vectors vectors;
  // Writes the sampled ones of the positions [0, count) to `out`, in order, and returns how many. A window
  // reaches kSampleWindow - 1 bytes past its position.
  std::size_t (*sample)(const std::byte* data, std::size_t count, std::uint32_t* out);
  // The number of equal bytes from `a` and `b` on, at most `most`.
  std::size_t (*equal_ahead)(const std::byte* a, const std::byte* b, std::size_t most);
  // The number of equal bytes before `a` and `b`, at most `most`.
  std::size_t (*equal_behind)(const std::byte* a, const std::byte* b, std::size_t most);
  // The first position where `run` bytes (8 to 32) are equal, all within `most`; `most` if there is none.
  std::size_t (*equal_again)(const std::byte* a, const std::byte* b, std::size_t most, unsigned run);
};

// Whether this processor has the instructions.
bool available(Vectors vectors);
const Kernels& kernels(Vectors vectors);
// The best that this processor has.
const Kernels& kernels();

namespace detail {
// Empty if the compiler does not target x86-64.
const Kernels* avx2_kernels();
const Kernels* avx512_kernels();

// The start of the first `run` ones in a row, 64 if there is none.
inline unsigned first_run(std::uint64_t equal, unsigned run) {
  unsigned have = 1;
  while (2 * have <= run) {
    equal &= equal >> have;
    have *= 2;
  }
  if (have < run) equal &= equal >> (run - have);
  return equal ? static_cast<unsigned>(__builtin_ctzll(equal)) : 64;
}
}  // namespace detail

}  // namespace longhaul::dedup
