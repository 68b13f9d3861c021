// SPDX-License-Identifier: Apache-2.0
// Runs the block codec of a session on the event loop: its work in pieces, its pauses, and the compression
// level that the processor allows. The totals are kept across sessions.
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

  // Call when a session begins. Null if the session does not use blocks.
  void begin(std::unique_ptr<reduction::Reduction> codec);
  void end();  // after the session
  BlockCodec* codec() const { return codec_.get(); }

  // ---- Called from the event loop.
  // Does remaining work, a limited piece at a time; other flows are served in between.
  void work();
  void relieve_processor();
  // Call about once a second while there is a disk dictionary: stores data that was sent before a pause.
  void on_second();
  // The session will end soon: stores all data sent so far, on both sides.
  void finish();
  bool finished() const { return !codec_ || codec_->finished(); }

  // ---- The dictionaries.
  // Empties both dictionaries of the session, here and at the peer, and the part of the peer's disk that this
  // link could use. Returns the number of bytes that the two held here. This side's disk must be cleared
  // afterwards.
  std::uint64_t clear();
  // The number of bytes that the peer dropped from its disk; nullopt until it has answered.
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
  bool works_ = false;  // work() is posted
  std::shared_ptr<SessionCodec*> self_;
};

}  // namespace longhaul::link
