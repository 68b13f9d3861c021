// SPDX-License-Identifier: Apache-2.0
#include "fec/field.h"

#include <isa-l/erasure_code.h>
#include <isa-l/gf_vect_mul.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace longhaul::fec {
namespace {

constexpr std::size_t kTableBytes = 32;  // size of a factor in ISA-L's format

struct Tables {
  alignas(64) std::uint8_t multiplication[256][kTableBytes];
  std::uint8_t inverse[256];

  Tables() {
    for (unsigned c = 0; c < 256; ++c) {
      gf_vect_mul_init(static_cast<unsigned char>(c), multiplication[c]);
      inverse[c] = c == 0 ? 0 : gf_inv(static_cast<unsigned char>(c));
    }
  }
};

const Tables& tables() {
  static const Tables computed;
  return computed;
}

// ISA-L's parameters are pointers to non-const, although it writes only to the destinations.
void multiply_add(std::uint8_t* to, std::uint8_t factor, const std::uint8_t* from, std::size_t bytes) {
  gf_vect_mad(static_cast<int>(bytes), 1, 0, const_cast<std::uint8_t*>(tables().multiplication[factor]),
              const_cast<std::uint8_t*>(from), to);
}

// Adds one source after the other to all rows: this reads each source once, and is faster than ec_encode_data
// (README).
void add_combinations(std::span<std::uint8_t* const> to, std::span<const std::uint8_t* const> from,
                      const std::uint8_t* factors, std::size_t bytes) {
  constexpr std::size_t kRows = 6;  // the most rows that ISA-L has kernels for
  std::array<std::uint8_t, kRows * kTableBytes> table;
  for (std::size_t first = 0; first < to.size(); first += kRows) {
    const std::size_t rows = std::min(kRows, to.size() - first);
    for (std::size_t j = 0; j < from.size(); ++j) {
      for (std::size_t i = 0; i < rows; ++i)
        std::memcpy(&table[i * kTableBytes], tables().multiplication[factors[(first + i) * from.size() + j]],
                    kTableBytes);
      ec_encode_data_update(static_cast<int>(bytes), 1, static_cast<int>(rows), 0, table.data(),
                            const_cast<std::uint8_t*>(from[j]),
                            const_cast<std::uint8_t**>(to.data() + first));
    }
  }
}

}  // namespace

static_assert(kMaxWindow + kKeys <= 256,
              "keys and symbols of one window need different elements of the field");

std::uint8_t coefficient(std::uint32_t key, SymbolId id) {
  return tables().inverse[(kMaxWindow + key % kKeys) ^ static_cast<unsigned>(id % kMaxWindow)];
}

void coefficients(std::uint32_t key, Window window, std::uint8_t* to) {
  const std::uint8_t* const inverses = tables().inverse;
  const unsigned x = kMaxWindow + key % kKeys;
  auto y = static_cast<unsigned>(window.first % kMaxWindow);
  for (std::uint32_t i = 0; i < window.count; ++i) {
    to[i] = inverses[x ^ y];
    if (++y == kMaxWindow) y = 0;
  }
}

std::uint8_t multiply(std::uint8_t a, std::uint8_t b) { return gf_mul(a, b); }
std::uint8_t inverse(std::uint8_t a) { return tables().inverse[a]; }

const Arithmetic kIsal{multiply_add, add_combinations};

const Arithmetic& arithmetic() {
  static const Arithmetic& fastest = gfni() ? *gfni() : kIsal;
  return fastest;
}

}  // namespace longhaul::fec
