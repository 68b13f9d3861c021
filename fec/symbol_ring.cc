// SPDX-License-Identifier: Apache-2.0
#include "fec/symbol_ring.h"

#include <bit>
#include <cassert>
#include <cstring>
#include <new>

namespace longhaul::fec {

AlignedBytes aligned_bytes(std::size_t bytes) {
  const std::size_t rounded = round_up(bytes);
  auto* memory = static_cast<std::uint8_t*>(std::aligned_alloc(kVectorBytes, rounded));
  if (!memory) throw std::bad_alloc();
  std::memset(memory, 0, rounded);
  return AlignedBytes(memory);
}

SymbolRing::SymbolRing(std::size_t symbols) : slots_(symbols) { assert(std::has_single_bit(symbols)); }

void SymbolRing::reserve(Slot& slot, std::size_t bytes) {
  if (bytes <= slot.capacity) return;
  const std::size_t rounded = round_up(bytes);
  AlignedBytes larger = aligned_bytes(rounded);
  if (slot.used > 0) std::memcpy(larger.get(), slot.memory.get(), slot.used);
  slot.memory = std::move(larger);
  slot.capacity = static_cast<std::uint32_t>(rounded);
  slot.dirty = slot.used;
}

void SymbolRing::put(SymbolId id, std::span<const Bytes> parts) {
  std::size_t payload = 0;
  for (const Bytes part : parts) payload += part.size();
  assert(payload <= kMaxPayload);
  Slot& s = slot(id);
  s.dirty = std::max(s.dirty, s.used);
  s.used = 0;
  reserve(s, kLengthBytes + payload);
  std::uint8_t* to = s.memory.get();
  *to++ = static_cast<std::uint8_t>(payload >> 8);
  *to++ = static_cast<std::uint8_t>(payload);
  for (const Bytes part : parts) {
    if (!part.empty()) std::memcpy(to, part.data(), part.size());
    to += part.size();
  }
  s.used = static_cast<std::uint32_t>(kLengthBytes + payload);
}

void SymbolRing::put_coded(SymbolId id, const std::uint8_t* coded, std::size_t bytes) {
  Slot& s = slot(id);
  s.dirty = std::max(s.dirty, s.used);
  s.used = 0;
  reserve(s, bytes);
  std::memcpy(s.memory.get(), coded, bytes);
  s.used = static_cast<std::uint32_t>(bytes);
}

Bytes SymbolRing::payload(SymbolId id) const {
  const Slot& s = slot(id);
  return {reinterpret_cast<const std::byte*>(s.memory.get()) + kLengthBytes, s.used - kLengthBytes};
}

void SymbolRing::pad(Slot& s, std::size_t bytes) {
  reserve(s, bytes);
  if (s.dirty > s.used) std::memset(s.memory.get() + s.used, 0, s.dirty - s.used);
  s.dirty = s.used;
}

}  // namespace longhaul::fec
