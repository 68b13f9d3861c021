// SPDX-License-Identifier: Apache-2.0
// Holds a client's data, starting with an open, while older flows of the same client have outstanding
// promises for that file: a program that lost its connection may continue on another one before the fate of
// the first is known. A flow without progress is given up; the open is then answered as for any file with
// lost writes. The protocol knows which requests are opens, and of which file.
#pragma once
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "codecs/slice.h"
#include "proxy/link/types.h"
#include "proxy/modules/promises/lost_writes.h"

namespace longhaul::promises {

// Frame: a client's message, with `bytes`, a Slice.
template <class Frame>
class OpenGate {
 public:
  // How long the older flows may make no progress: it takes minutes to notice that a server lost power.
  // Counted from their last progress, not from the open, because impatient clients retry.
  static constexpr auto kPatience = std::chrono::seconds(5);
  static constexpr auto kLookEvery = std::chrono::milliseconds(20);
  // Bytes of frames. Clients wait for the response to an open; one that does not is not waited for any
  // longer.
  static constexpr std::size_t kMostHeldBytes = 1 << 20;

  // Both outlive this object. `own`: the flow of the open.
  OpenGate(LostWrites& lost, const LiveLedger& own) : lost_(lost), own_(own) {}

  bool is_shut() const { return file_.has_value(); }
  // An open of this file has arrived, or a rename (`below`). Returns true if it must be held, with everything
  // after it.
  using Reach = LostWrites::Reach;
  bool shuts_for(link::TimePoint now, const LostWrites::File& file, Reach reach = Reach::itself) {
    if (lost_.live().finish_others(file, own_, reach).bytes == 0) return false;
    file_ = file;
    reach_ = reach;
    look_at_ = now + kLookEvery;
    return true;
  }
  void hold(const Frame& frame) {
    held_bytes_ += frame.bytes.size();
    held_.push_back(frame);
    held_.back().bytes = Slice::copy_of(frame.bytes.bytes());
  }
  // Returns held frames when there is no reason to wait any more; one of them may shut the gate again.
  std::vector<Frame> poll_open(link::TimePoint now) {
    if (!is_shut()) return {};
    const auto unfinished = lost_.live().finish_others(*file_, own_, reach_);
    const bool patient = now - unfinished.moved_at < kPatience && held_bytes_ <= kMostHeldBytes;
    look_at_ = now + kLookEvery;
    if (unfinished.bytes != 0 && patient) return {};
    if (unfinished.bytes != 0) lost_.live().end(*file_, Cause::server_gone, &own_, reach_);
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
  Reach reach_ = Reach::itself;
  std::vector<Frame> held_;
  std::size_t held_bytes_ = 0;
  link::TimePoint look_at_{};
};

}  // namespace longhaul::promises
