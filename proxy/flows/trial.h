// SPDX-License-Identifier: Apache-2.0
// A connection to a server that was made before its client asked, until the server has answered: remembers
// what the server was told, and decides whether that may be told again on a new connection, of which the
// client notices nothing.
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
  // What a new connection takes at once.
  static constexpr std::size_t kMostBytes = 8 * 1024;

  // `memory`: of all modules, in which what was said counts; null: nowhere.
  explicit Trial(const modules::ConnectAhead& rule, std::shared_ptr<modules::Memory> memory = nullptr)
      : rule_(rule), counted_(std::move(memory)) {}

  // False: these bytes must go to a new connection, and everything before them again.
  bool may_say(const SliceQueue& queue) const;
  void said(const SliceQueue& queue, std::size_t bytes);  // of its front
  void ended() { has_ended_ = true; }                     // the client's direction
  bool is_passed_by(Bytes first) const { return rule_.is_answer(first); }

  // The connection is of no use. False: the server was asked for nothing, so its end is as good as
  // any answer.
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
