// SPDX-License-Identifier: Apache-2.0
#include "fec/window_encoder.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "fec/field.h"

namespace longhaul::fec {

WindowEncoder::WindowEncoder(Options options) : ring_(options.kept_symbols) {
  assert(options.kept_symbols >= kMaxWindow);
}

SymbolId WindowEncoder::add(std::span<const Bytes> parts) {
  ring_.put(next_, parts);
  return next_++;
}

std::span<const Repair> WindowEncoder::repair_last(std::uint32_t symbols, std::uint32_t count) {
  const auto kept = static_cast<std::uint32_t>(std::min<std::uint64_t>(next_ - first_kept(), kMaxWindow));
  symbols = std::min(symbols, kept);
  return repair({next_ - symbols, symbols}, count);
}

std::span<const Repair> WindowEncoder::repair(Window window, std::uint32_t count) {
  repairs_.clear();
  if (window.count == 0 || window.count > kMaxWindow || window.first < first_kept() ||
      window.first + window.count > next_)
    return {};
  count = std::min(count, kKeys);

  std::size_t longest = 0;
  for (SymbolId id = window.first; id < window.first + window.count; ++id)
    longest = std::max(longest, ring_.coded_bytes(id));
  const std::size_t stride = round_up(longest);
  if (coded_bytes_ < stride * count) {
    coded_bytes_ = stride * count;
    coded_ = aligned_bytes(coded_bytes_);
  }
  std::memset(coded_.get(), 0, stride * count);
  sources_.resize(window.count);
  for (std::uint32_t i = 0; i < window.count; ++i) sources_[i] = ring_.padded(window.first + i, stride);
  rows_.resize(count);
  factors_.resize(std::size_t{count} * window.count);
  for (std::uint32_t row = 0; row < count; ++row) {
    const std::uint32_t key = next_key_;
    next_key_ = (next_key_ + 1) % kKeys;
    rows_[row] = coded_.get() + row * stride;
    coefficients(key, window, factors_.data() + std::size_t{row} * window.count);
    repairs_.push_back({window, key, {reinterpret_cast<const std::byte*>(rows_[row]), longest}});
  }
  arithmetic().add_combinations(rows_, sources_, factors_.data(), stride);
  return repairs_;
}

}  // namespace longhaul::fec
