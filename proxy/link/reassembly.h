// SPDX-License-Identifier: Apache-2.0
// The receiving half of a stream in wire bytes: orders pieces that arrive out of order, repeatedly or in
// part, and delivers every byte exactly once. record_parser.h parses the bytes.
#pragma once
#include <algorithm>
#include <map>

#include "codecs/byte_writer.h"
#include "codecs/result.h"
#include "proxy/link/types.h"

namespace longhaul::link {

class Reassembly {
 public:
  // Gives `sink(Bytes) -> Result<void>` all bytes that are now in order. Bytes after a gap may use up to
  // `waiting_room`, as measured by waiting_cost(); more is an error.
  template <class Sink>
  Result<void> insert(StreamOffset offset, Bytes bytes, std::uint64_t waiting_room, Sink&& sink) {
    if (offset + bytes.size() <= contiguous_) return {};
    if (offset > contiguous_) return keep(offset, bytes, waiting_room);
    if (auto fed = feed(offset, bytes, sink); !fed) return fed;
    while (!waiting_.empty() && waiting_.begin()->first <= contiguous_) {
      auto piece = waiting_.extract(waiting_.begin());
      waiting_bytes_ -= piece.mapped().bytes.size();
      if (!keeps_) {
        contiguous_ = std::max(contiguous_, piece.key() + piece.mapped().size);
      } else if (auto fed = feed(piece.key(), piece.mapped().bytes, sink); !fed) {
        return fed;
      }
    }
    return {};
  }

  // Later bytes have no reader: only their positions are recorded, to be acknowledged, and not their content.
  void stop_keeping() {
    keeps_ = false;
    for (auto& [offset, piece] : waiting_) piece.bytes = {};
    waiting_bytes_ = 0;
  }

  StreamOffset contiguous() const { return contiguous_; }
  // The end of all received bytes, with or without gaps.
  StreamOffset end() const { return waiting_.empty() ? contiguous_ : end_of(*waiting_.rbegin()); }
  // The memory of waiting bytes, including that of their bookkeeping.
  std::uint64_t waiting_cost() const { return waiting_bytes_ + kPieceCost * waiting_.size(); }

 private:
  static constexpr std::size_t kPieceCost = 128;
  static constexpr std::size_t kJoinBytes = 64 * 1024;
  struct Piece {
    std::uint64_t size;
    Buffer bytes;  // empty after stop_keeping()
  };
  using Waiting = std::map<StreamOffset, Piece>;

  template <class Sink>
  Result<void> feed(StreamOffset offset, Bytes bytes, Sink& sink) {
    if (offset + bytes.size() <= contiguous_) return {};
    Bytes fresh = bytes.subspan(static_cast<std::size_t>(contiguous_ - offset));
    contiguous_ += fresh.size();
    return sink(fresh);
  }

  static StreamOffset end_of(const Waiting::value_type& piece) { return piece.first + piece.second.size; }

  // Stores only new bytes, so that pieces never overlap and no byte counts twice.
  Result<void> keep(StreamOffset offset, Bytes bytes, std::uint64_t room) {
    const StreamOffset end = offset + bytes.size();
    const std::uint64_t most = waiting_cost() + room;
    auto next = waiting_.upper_bound(offset);
    StreamOffset at = offset;
    if (next != waiting_.begin()) at = std::max(at, end_of(*std::prev(next)));
    while (at < end) {
      const StreamOffset hole_end = next == waiting_.end() ? end : std::min(end, next->first);
      if (at < hole_end) {
        Bytes piece =
            bytes.subspan(static_cast<std::size_t>(at - offset), static_cast<std::size_t>(hole_end - at));
        put(next, at, piece);
        if (waiting_cost() > most) return LinkError::too_fragmented;
      }
      if (next == waiting_.end()) break;
      at = std::max(at, end_of(*next++));
    }
    return {};
  }

  void put(Waiting::iterator next, StreamOffset at, Bytes piece) {
    // Small adjacent pieces, as a quiet stream sends them, are joined.
    const bool joins = next != waiting_.begin() && end_of(*std::prev(next)) == at &&
                       (!keeps_ || std::prev(next)->second.size + piece.size() <= kJoinBytes);
    auto place = joins ? std::prev(next) : waiting_.emplace_hint(next, at, Piece{0, {}});
    place->second.size += piece.size();
    if (!keeps_) return;
    waiting_bytes_ += piece.size();
    // Grows in small steps, because only bytes are counted, not spare capacity.
    Buffer& bytes = place->second.bytes;
    if (bytes.capacity() - bytes.size() < piece.size())
      bytes.reserve(bytes.size() + std::max(piece.size(), bytes.size() / 4));
    append(bytes, piece);
  }

  StreamOffset contiguous_;
  Waiting waiting_;
  std::uint64_t waiting_bytes_ = 0;
  bool keeps_ = true;
};

}  // namespace longhaul::link
