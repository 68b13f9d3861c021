// SPDX-License-Identifier: Apache-2.0
// A connection to a server that was made before its client connected, until the server has answered: keeps
// the bytes that were sent, and decides whether they may be sent again on a new connection without the client
// noticing.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "codecs/byte_writer.h"
#include "codecs/slice_queue.h"
#include "proxy/modules/connect_ahead.h"
#include "proxy/modules/memory.h"

namespace longhaul::flows {

class Trial {
 public:
  // A new connection accepts this much at once.
  static constexpr std::size_t kMostBytes = 8 * 1024;

  // `memory`: of all modules, in which what was said counts; null: nowhere.
  explicit Trial(const modules::ConnectAhead& rule, std::shared_ptr<modules::Memory> memory = nullptr)
      : rule_(rule), counted_(std::move(memory)) {}

  // Returns false if these bytes must be sent on a new connection, after all earlier bytes.
  bool may_say(const SliceQueue& queue) const;
  void said(const SliceQueue& queue, std::size_t bytes);  // sent from its front
  void ended() { has_ended_ = true; }                     // the client's direction
  bool is_passed_by(Bytes first) const { return rule_.is_answer(first); }

  // The connection has failed. Returns false if nothing was sent to the server, so that its end is a valid
  // answer.
  bool fail() { return has_failed_ = !has_ended_ || !said_.empty(); }
  bool has_failed() const { return has_failed_; }

  const Buffer& all_said() const { return said_; }
  bool has_ended() const { return has_ended_; }

 private:
  const modules::ConnectAhead& rule_;
  Buffer said_;
  modules::MemoryShare counted_;
  bool has_ended_ = false, has_failed_ = false;
};

}  // namespace longhaul::flows
