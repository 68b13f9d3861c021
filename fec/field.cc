// SPDX-License-Identifier: Apache-2.0
#include "fec/field.h"

#include <isa-l/erasure_code.h>
#include <isa-l/gf_vect_mul.h>

#include <memory>

#include "fec/symbol_ring.h"

namespace longhaul::fec {
namespace {

struct Tables {
  alignas(kVectorBytes) std::uint8_t multiplication[256][kTableBytes];
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

}  // namespace

static_assert(kMaxWindow + kKeys <= 256,
              "keys and symbols of one window need different elements of the field");

std::uint8_t coefficient(std::uint32_t key, SymbolId id) {
  return tables().inverse[(kMaxWindow + key % kKeys) ^ static_cast<unsigned>(id % kMaxWindow)];
}

std::uint8_t inverse(std::uint8_t a) { return tables().inverse[a]; }

const std::uint8_t* multiplication_table(std::uint8_t c) { return tables().multiplication[c]; }

// ISA-L reads through pointers to non-const; it writes only to the destinations.
void multiply_add(std::uint8_t* to, std::uint8_t factor, const std::uint8_t* from, std::size_t bytes) {
  gf_vect_mad(static_cast<int>(bytes), 1, 0, const_cast<std::uint8_t*>(multiplication_table(factor)),
              const_cast<std::uint8_t*>(from), to);
}

void combine(std::span<std::uint8_t*> to, std::span<std::uint8_t*> from, const std::uint8_t* tables,
             std::size_t bytes) {
  ec_encode_data(static_cast<int>(bytes), static_cast<int>(from.size()), static_cast<int>(to.size()),
                 const_cast<std::uint8_t*>(tables), from.data(), to.data());
}

}  // namespace longhaul::fec
