// SPDX-License-Identifier: Apache-2.0
// The receiving half of a stream in wire bytes: puts what arrives in any order, twice or in part, into one
// order and hands on every byte exactly once. What the bytes mean is in records.h.
#pragma once
#include <map>

#include "codecs/slice.h"
#include "proxy/link/types.h"

namespace longhaul::link {

class Reassembly {
 public:
  // Bounds on what waits for a gap to close: bytes come from the caller, who knows the credit.
  static constexpr std::size_t kMaxWaitingPieces = 8192;

  // Feeds `sink(Bytes) -> Result<void>` all bytes that are now in order. Data past `contiguous() +
  // waiting_limit` or in too many pieces is an error.
  template <class Sink>
  Result<void> insert(std::uint64_t offset, Bytes bytes, std::uint64_t waiting_limit, Sink&& sink) {
    if (offset + bytes.size() <= contiguous_) return {};
    if (offset > contiguous_) return keep(offset, bytes, waiting_limit);
    if (auto fed = feed(offset, bytes, sink); !fed) return fed;
    while (!waiting_.empty() && waiting_.begin()->first <= contiguous_) {
      auto piece = waiting_.extract(waiting_.begin());
      if (auto fed = feed(piece.key(), piece.mapped().bytes(), sink); !fed) return fed;
    }
    return {};
  }

  std::uint64_t contiguous() const { return contiguous_; }

 private:
  template <class Sink>
  Result<void> feed(std::uint64_t offset, Bytes bytes, Sink& sink) {
    if (offset + bytes.size() <= contiguous_) return {};
    Bytes fresh = bytes.subspan(static_cast<std::size_t>(contiguous_ - offset));
    contiguous_ += fresh.size();
    return sink(fresh);
  }

  Result<void> keep(std::uint64_t offset, Bytes bytes, std::uint64_t waiting_limit) {
    if (offset + bytes.size() > contiguous_ + waiting_limit) return LinkError::credit_exceeded;
    auto [place, added] = waiting_.try_emplace(offset);
    if (added && waiting_.size() > kMaxWaitingPieces) return LinkError::too_fragmented;
    if (place->second.size() < bytes.size()) place->second = Slice::copy_of(bytes);
    return {};
  }

  std::uint64_t contiguous_ = 0;
  std::map<std::uint64_t, Slice> waiting_;
};

}  // namespace longhaul::link
