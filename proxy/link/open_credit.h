// SPDX-License-Identifier: Apache-2.0
// Credit for streams that do not exist yet: each side reserves some for the streams that the other opens, so
// that their first bytes need not wait for a round trip. PROTOCOL.md, section 5.
#pragma once
#include "proxy/link/frames.h"
#include "proxy/link/memory.h"
#include "proxy/link/types.h"

namespace longhaul::link {

class OpenCredit {
 public:
  explicit OpenCredit(CreditPool& pool) : pool_(pool) {}
  ~OpenCredit() { pool_.give(ahead()); }
  OpenCredit(const OpenCredit&) = delete;
  OpenCredit& operator=(const OpenCredit&) = delete;

  // ---- Reserved by this side for the peer's streams.
  enum class Traffic : std::uint8_t { none, some };
  // Returns whether the reserve has grown, so that the peer must be informed.
  bool grant(Traffic traffic);
  // The peer used some credit for a stream that it opened.
  Result<void> take(std::uint64_t bytes);
  std::uint64_t granted() const { return granted_; }
  std::uint64_t ahead() const { return granted_ - used_; }

  // ---- Reserved by the peer for streams of this side.
  void on_frame(const OpenCreditFrame& frame);
  struct First {
    std::uint64_t credit;
    std::uint64_t from_open_credit;  // the rest is the floor of every stream
  };
  // The initial credit of a new stream, bounded by `window`; 0: unbounded.
  First take_first(std::uint64_t window);

 private:
  CreditPool& pool_;
  std::uint64_t granted_ = 0, used_ = 0;
  std::uint64_t peer_share_ = 0;  // left when the peer last increased it
  std::uint64_t peer_limit_ = 0, peer_taken_ = 0, peer_floor_ = 0;
};

}  // namespace longhaul::link
