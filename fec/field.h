// SPDX-License-Identifier: Apache-2.0
// GF(2^8) with the polynomial 0x11d, as in ISA-L, and the coefficients that both sides derive from a repair's
// key.
#pragma once
#include "fec/symbol.h"

namespace longhaul::fec {

// The coefficient of a symbol in the repair with that key: 1 / (x + y), where x is the key's element of the
// field and y the symbol's. The two sets are disjoint, so it exists and is never zero; it is a Cauchy matrix,
// so any m repairs over one window with different keys restore any m symbols of it, without exception.
std::uint8_t coefficient(std::uint32_t key, SymbolId id);
void coefficients(std::uint32_t key, Window window, std::uint8_t* to);  // of all its symbols in turn

std::uint8_t multiply(std::uint8_t a, std::uint8_t b);
std::uint8_t inverse(std::uint8_t a);  // of 0: 0

// Operations on whole symbols. `bytes` is a multiple of kVectorBytes, and so is every address.
struct Arithmetic {
  // to += factor * from. `to` may be `from`.
  void (*multiply_add)(std::uint8_t* to, std::uint8_t factor, const std::uint8_t* from, std::size_t bytes);

  // to[i] += the sum over j of factors[i * from.size() + j] * from[j]. Several rows at once cost less than
  // one by one.
  void (*add_combinations)(std::span<std::uint8_t* const> to, std::span<const std::uint8_t* const> from,
                           const std::uint8_t* factors, std::size_t bytes);
};

extern const Arithmetic kIsal;   // runs anywhere: ISA-L chooses AVX-512, AVX2, NEON or plain code
const Arithmetic* gfni();        // two to three times as fast; nullptr where the CPU has none (field_gfni.cc)
const Arithmetic& arithmetic();  // the fastest that this CPU has

}  // namespace longhaul::fec
