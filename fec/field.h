// SPDX-License-Identifier: Apache-2.0
// GF(2^8) with the polynomial 0x11d, as in ISA-L, and the coefficients that both sides derive from a repair's
// key.
#pragma once
#include "fec/symbol.h"

namespace longhaul::fec {

// The coefficient of a symbol in the repair with that key: 1 / (x + y), where x is the field element of the
// key and y that of the symbol. The two sets are disjoint, so the coefficient exists and is never zero. The
// coefficients form a Cauchy matrix, so any m repairs with different keys over one window restore any m
// symbols of it.
std::uint8_t coefficient(std::uint32_t key, SymbolId id);
void coefficients(std::uint32_t key, Window window, std::uint8_t* to);  // of all its symbols, in order

std::uint8_t multiply(std::uint8_t a, std::uint8_t b);
std::uint8_t inverse(std::uint8_t a);  // of 0: 0

// Operations on whole symbols. `bytes` is a multiple of kVectorBytes, and so is every address.
struct Arithmetic {
  // to += factor * from. `to` may be `from`.
  void (*multiply_add)(std::uint8_t* to, std::uint8_t factor, const std::uint8_t* from, std::size_t bytes);

  // to[i] += the sum over j of factors[i * from.size() + j] * from[j]. Several rows at once are faster than
  // one by one.
  void (*add_combinations)(std::span<std::uint8_t* const> to, std::span<const std::uint8_t* const> from,
                           const std::uint8_t* factors, std::size_t bytes);
};

extern const Arithmetic kIsal;   // runs anywhere: ISA-L chooses AVX-512, AVX2, NEON or plain code
const Arithmetic* gfni();        // two to three times as fast; null if the CPU lacks it (field_gfni.cc)
const Arithmetic& arithmetic();  // the fastest on this CPU

}  // namespace longhaul::fec
