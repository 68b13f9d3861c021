// SPDX-License-Identifier: Apache-2.0
// Holds what a client sends, from an open on, while older flows of the same client owe promised writes of
// that file: a program that lost its connection continues on another before it is known what became of the
// first. A flow that makes no progress is given up; the open is then answered as for any file with lost
// writes. Which requests are opens, and of what, is the protocol's to say.
#pragma once
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "codecs/slice.h"
#include "proxy/link/types.h"
#include "proxy/modules/promises/lost_writes.h"

namespace longhaul::promises {

// Frame: what a client sends, with `bytes`, a Slice.
template <class Frame>
class OpenGate {
 public:
  // How long the older flows may have made no progress: a server that lost its power is not known to be gone
  // for minutes. Since they last did, not since the open: clients that do not wait so long come again.
  static constexpr auto kPatience = std::chrono::seconds(5);
  static constexpr auto kLookEvery = std::chrono::milliseconds(20);
  // Of frames. Clients wait for the answer to an open; one that does not ends the patience.
  static constexpr std::size_t kMostHeldBytes = 1 << 20;

  // Both outlive this object. `own`: of the flow that asks.
  OpenGate(LostWrites& lost, const LiveLedger& own) : lost_(lost), own_(own) {}

  bool is_shut() const { return file_.has_value(); }
  // An open of this file has come. True: it is to be held, and all that follows it.
  bool shuts_for(link::TimePoint now, const LostWrites::File& file) {
    if (lost_.finish_others(file, own_).bytes == 0) return false;
    file_ = file;
    look_at_ = now + kLookEvery;
    return true;
  }
  void hold(const Frame& frame) {
    held_bytes_ += frame.bytes.size();
    held_.push_back(frame);
    held_.back().bytes = Slice::copy_of(frame.bytes.bytes());
  }
  // Gives back what is held when there is nothing to wait for any more; it may shut the gate again.
  std::vector<Frame> poll_open(link::TimePoint now) {
    if (!is_shut()) return {};
    const auto unfinished = lost_.finish_others(*file_, own_);
    const bool patient = now - unfinished.moved_at < kPatience && held_bytes_ <= kMostHeldBytes;
    look_at_ = now + kLookEvery;
    if (unfinished.bytes != 0 && patient) return {};
    if (unfinished.bytes != 0) lost_.end_live(*file_, Cause::server_gone, &own_);
    file_.reset();
    held_bytes_ = 0;
    return std::exchange(held_, {});
  }
  std::optional<link::TimePoint> next_timeout() const {
    return is_shut() ? std::optional(look_at_) : std::nullopt;
  }
  std::size_t held_bytes() const { return held_bytes_; }

 private:
  LostWrites& lost_;
  const LiveLedger& own_;
  std::optional<LostWrites::File> file_;
  std::vector<Frame> held_;
  std::size_t held_bytes_ = 0;
  link::TimePoint look_at_{};
};

}  // namespace longhaul::promises
