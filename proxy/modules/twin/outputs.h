// SPDX-License-Identifier: Apache-2.0
// Collects the outputs of a module's half. Only pass_on() and tell() write to the stream, and only whole
// frames, so that the twin always finds frames where it expects them.
#pragma once
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "proxy/modules/module.h"
#include "proxy/modules/twin/codec.h"

namespace longhaul::twin {

template <class Message>
class Outputs {
 public:
  void to_lan(Slice bytes) {
    if (!lan_ended_) queue_.push_back(modules::ToLan{std::move(bytes)});
  }
  // Sends a whole frame to the twin, which receives it in Half::frame_from_stream().
  // `isolated`: see modules::ToStream.
  void pass_on(Slice frame, bool isolated = false) {
    if (stream_ == Stream::open)
      queue_.push_back(modules::ToStream{.bytes = std::move(frame), .is_isolated = isolated});
  }
  // Sends a message to the twin, at this position between the frames. `attached` follows as raw bytes, which
  // are reduced like any others unless they are `isolated`; the message contains its length
  // (attached_bytes()).
  void tell(const Message& message, Slice attached = {}, bool isolated = false) {
    if (stream_ != Stream::open) return;
    queue_.push_back(modules::ToTwin{encode(message)});
    if (!attached.empty()) pass_on(std::move(attached), isolated);
  }
  // Half-closes after all earlier output; later output is dropped.
  void end_lan() {
    if (!std::exchange(lan_ended_, true)) queue_.push_back(modules::EndLan{});
  }
  void end_stream() {
    if (stream_ != Stream::open) return;
    queue_.push_back(modules::EndStream{});
    stream_ = Stream::ended;
  }
  // To be called before end_lan() (modules::Redial).
  void redial() { queue_.push_back(modules::Redial{}); }
  void abort() { queue_.push_back(modules::Abort{}); }  // a promise cannot be kept: resets both ends

  // For framed_module.h. `rest` is the held part of a frame, which is sent last, because the twin must not
  // search it for a frame. Later frames and messages are dropped.
  void step_aside_to_stream(modules::Reason reason, std::vector<Slice> rest) {
    queue_.push_back(modules::StepAside{modules::Way::to_stream, reason});
    for (Slice& bytes : rest) queue_.push_back(modules::ToStream{std::move(bytes)});
    stream_ = Stream::aside;
  }
  void step_aside_to_lan() { queue_.push_back(modules::StepAside{modules::Way::to_lan}); }

  std::optional<modules::Output> poll() {
    std::optional<modules::Output> first;
    if (queue_.empty()) return first;
    first.emplace(std::move(queue_.front()));
    queue_.pop_front();
    return first;
  }
  // Takes all outputs out; they can be put back later.
  std::deque<modules::Output> exchange(std::deque<modules::Output> queue) {
    return std::exchange(queue_, std::move(queue));
  }

 private:
  enum class Stream : std::uint8_t { open, ended, aside } stream_ = Stream::open;
  bool lan_ended_ = false;
  std::deque<modules::Output> queue_;
};

}  // namespace longhaul::twin
