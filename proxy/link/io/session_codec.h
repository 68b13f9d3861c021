// SPDX-License-Identifier: Apache-2.0
// The block codec of a session, driven from the loop: its work in pieces, its pauses, the compression level
// that the processor allows, and its totals. Sessions come and go; the totals stay.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "codecs/reduction/reduction.h"
#include "proxy/link/encode_relief.h"
#include "proxy/link/reduction_totals.h"
#include "proxy/link/status.h"

namespace longhaul::link {

class SessionCodec {
 public:
  // `kick` is called when the session may have something to send.
  SessionCodec(boost::asio::io_context& io, std::function<void()> kick)
      : io_(io), kick_(std::move(kick)), self_(std::make_shared<SessionCodec*>(this)) {}
  ~SessionCodec() { *self_ = nullptr; }
  SessionCodec(const SessionCodec&) = delete;
  SessionCodec& operator=(const SessionCodec&) = delete;

  // With a session; none: its bytes flow without blocks.
  void begin(std::unique_ptr<reduction::Reduction> codec);
  void end();  // after the session
  BlockCodec* codec() const { return codec_.get(); }

  // ---- From the loop.
  // Remaining work, a limited piece at a time; other flows are served in between.
  void work();
  void relieve_processor();
  // About once a second, while there is a disk dictionary: data sent before a pause is stored.
  void on_second();
  // The session is about to end: all data sent so far is stored now, on both sides.
  void finish();
  bool finished() const { return !codec_ || codec_->finished(); }

  // ---- The dictionaries.
  // Both dictionaries of the session are emptied, here and at the peer, and so is the peer's disk, of what
  // this link could use. Returns how many bytes the two held here. This side's disk is to be cleared after
  // this.
  std::uint64_t clear();
  // How many bytes the peer dropped from its disk for that; no result until it has answered.
  std::optional<std::uint64_t> cleared_by_peer() const;
  // The peer's rights to read the disk dictionary have changed.
  void set_rights(reduction::SegmentRights rights);
  std::uint64_t memory_bytes() const { return codec_ ? codec_->memory_bytes() : 0; }

  void fill(LinkStatus& status) const;

 private:
  boost::asio::io_context& io_;
  std::function<void()> kick_;
  std::unique_ptr<reduction::Reduction> codec_;
  ReductionTotals totals_;
  EncodeRelief relief_;
  std::uint64_t blocks_at_last_second_ = 0;
  bool works_ = false;  // posted
  std::shared_ptr<SessionCodec*> self_;
};

}  // namespace longhaul::link
