// SPDX-License-Identifier: Apache-2.0
// Keeps the last source symbols and makes repairs over any window of them. The controller decides how many
// and when; the carrier sends them in packets.
#pragma once
#include <vector>

#include "fec/symbol.h"
#include "fec/symbol_ring.h"

namespace longhaul::fec {

class WindowEncoder {
 public:
  struct Options {
    std::size_t kept_symbols = 256;  // a power of two; at least kMaxWindow
  };

  WindowEncoder() : WindowEncoder(Options{}) {}
  explicit WindowEncoder(Options);

  // Copies the payload, at most kMaxPayload bytes, and assigns the next number. The second form concatenates
  // parts.
  SymbolId add(Bytes payload) { return add(std::span(&payload, 1)); }
  SymbolId add(std::span<const Bytes> parts);

  SymbolId next_id() const { return next_; }

  // Makes `count` repairs over the last `symbols` symbols (fewer if fewer are kept, and at most kMaxWindow),
  // or over a window of kept symbols. They stay valid until the next call. Several at once are faster than
  // one by one. At most kKeys repairs are made, because no more different ones exist per window.
  std::span<const Repair> repair_last(std::uint32_t symbols, std::uint32_t count);
  std::span<const Repair> repair(Window window, std::uint32_t count);

  SymbolId first_kept() const { return next_ > ring_.size() ? next_ - ring_.size() : 0; }

 private:
  SymbolRing ring_;
  SymbolId next_ = 0;
  std::uint32_t next_key_ = 0;
  // Kept between calls, so that calls do not allocate.
  AlignedBytes coded_;
  std::size_t coded_bytes_ = 0;
  std::vector<std::uint8_t> factors_;
  std::vector<const std::uint8_t*> sources_;
  std::vector<std::uint8_t*> rows_;
  std::vector<Repair> repairs_;
};

}  // namespace longhaul::fec
