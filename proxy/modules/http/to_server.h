// SPDX-License-Identifier: Apache-2.0
// The near half's output to the server: the client's requests, without the bytes that the server had before
// this half could read them, its own questions, and one end, or the point from which requests pass unread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>

#include "proxy/modules/module.h"

namespace longhaul::http {

class ToServer {
 public:
  // `out` outlives this object.
  explicit ToServer(std::deque<modules::Output>& out) : out_(out) {}

  // The server has that many of the next bytes.
  void skip(std::size_t bytes) { skipped_ += bytes; }
  bool is_skipping() const { return skipped_ > 0; }

  void pass(Bytes bytes) { put(bytes, false); }
  // Of a request's content, without framing.
  void pass_content(Bytes bytes) { put(bytes, true); }
  // Smaller content is not worth a block of its own, and may be a form with a password.
  static constexpr std::uint64_t kLeastContent = 4096;
  // What the server cannot have: nothing is left to skip, or it is this half's own.
  void say(Slice bytes) { out_.push_back(modules::ToStream{std::move(bytes)}); }
  // From here on, requests pass without the module, after `rest`: those that it has and does not read.
  void step_aside(modules::Reason reason, Bytes rest);
  bool has_stepped_aside() const { return stepped_aside_; }
  // Once, whatever is asked for.
  void end();
  bool has_ended() const { return ended_; }

 private:
  void put(Bytes bytes, bool is_content);

  std::deque<modules::Output>& out_;
  std::size_t skipped_ = 0;
  bool stepped_aside_ = false, ended_ = false;
};

}  // namespace longhaul::http
