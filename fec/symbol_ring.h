// SPDX-License-Identifier: Apache-2.0
// The bytes of the last symbols, zero padded so that the arithmetic needs no special case for short symbols.
// The encoder and the decoder track which of them are valid.
#pragma once
#include <cstdlib>
#include <memory>
#include <vector>

#include "fec/symbol.h"

namespace longhaul::fec {

// The unit of the vector code: every length and every address is a multiple of it.
inline constexpr std::size_t kVectorBytes = 64;
constexpr std::size_t round_up(std::size_t bytes) {
  return (bytes + kVectorBytes - 1) / kVectorBytes * kVectorBytes;
}

// Zeroed memory at an address that is a multiple of kVectorBytes.
struct FreeAligned {
  void operator()(std::uint8_t* memory) const { std::free(memory); }
};
using AlignedBytes = std::unique_ptr<std::uint8_t[], FreeAligned>;
AlignedBytes aligned_bytes(std::size_t bytes);

class SymbolRing {
 public:
  explicit SymbolRing(std::size_t symbols);  // a power of two

  std::size_t size() const { return slots_.size(); }

  // Replaces the symbol `size()` numbers earlier. A slot's memory is allocated when it is first used.
  void put(SymbolId id, std::span<const Bytes> parts);

  // Stores a coded symbol (which begins with its length), of which `bytes` are significant.
  void put_coded(SymbolId id, const std::uint8_t* coded, std::size_t bytes);

  // Significant bytes: length and payload. All bytes after them are zero.
  std::size_t coded_bytes(SymbolId id) const { return slot(id).used; }
  Bytes payload(SymbolId id) const;

  // The coded symbol with zeros up to at least `bytes`, a multiple of kVectorBytes.
  std::uint8_t* padded(SymbolId id, std::size_t bytes) {
    Slot& s = slot(id);
    if (s.capacity < bytes || s.dirty > s.used) pad(s, bytes);
    return s.memory.get();
  }

 private:
  struct Slot {
    AlignedBytes memory;
    std::uint32_t capacity = 0;
    std::uint32_t used = 0;
    std::uint32_t dirty = 0;  // bytes of an older symbol may remain from `used` to here
  };
  Slot& slot(SymbolId id) { return slots_[id & (slots_.size() - 1)]; }
  const Slot& slot(SymbolId id) const { return slots_[id & (slots_.size() - 1)]; }
  static void reserve(Slot&, std::size_t bytes);
  static void pad(Slot&, std::size_t bytes);

  std::vector<Slot> slots_;
};

}  // namespace longhaul::fec
