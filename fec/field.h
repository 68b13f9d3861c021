// SPDX-License-Identifier: Apache-2.0
// GF(2^8) with the polynomial 0x11d, on ISA-L's vector code, and the coefficients that both sides derive from
// a repair's key. Leaves it to its callers which bytes to combine.
#pragma once
#include <array>

#include "fec/symbol.h"

namespace longhaul::fec {

// The coefficient of a symbol in the repair with that key: 1 / (x + y), where x is the key's element of the
// field and y the symbol's. The two sets are disjoint, so it exists and is never zero; it is a Cauchy matrix,
// so any m repairs over one window with different keys restore any m symbols of it, without exception.
std::uint8_t coefficient(std::uint32_t key, SymbolId id);

std::uint8_t inverse(std::uint8_t a);  // of 0: 0

// What ISA-L wants to multiply by a coefficient.
inline constexpr std::size_t kTableBytes = 32;
const std::uint8_t* multiplication_table(std::uint8_t coefficient);

// to += factor * from. `bytes` is a multiple of kVectorBytes. `to` may be `from`.
void multiply_add(std::uint8_t* to, std::uint8_t factor, const std::uint8_t* from, std::size_t bytes);

// Row i of `to` becomes the sum over j of factor(i, j) * from[j]. `tables` has the multiplication tables of
// row 0's factors, then row 1's.
void combine(std::span<std::uint8_t*> to, std::span<std::uint8_t*> from, const std::uint8_t* tables,
             std::size_t bytes);

}  // namespace longhaul::fec
