// SPDX-License-Identifier: Apache-2.0
// The near half's output to the client: the server's bytes, cached responses, and one end. Limits how much
// one call answers.
#pragma once
#include <cstdint>
#include <deque>

#include "proxy/modules/http/stored_answer.h"
#include "proxy/modules/module.h"

namespace longhaul::http {

class ToClient {
 public:
  // Limit on the cached bytes, heads included, that one call sends; the last answer may exceed it. Bounds the
  // memory that a client can use by sending requests without reading.
  static constexpr std::uint64_t kMostAnsweredBytes = 4 << 20;

  // `out` outlives this object.
  explicit ToClient(std::deque<modules::Output>& out) : out_(out) {}

  void begin_call() { answered_bytes_ = 0; }
  bool has_answered_enough() const { return answered_bytes_ >= kMostAnsweredBytes; }

  void pass(Slice bytes);
  void answer(Slice head);
  void answer(Slice head, const Stored& object, Part part);
  // From here on, responses pass without the module. Once, and not after the end.
  void step_aside();
  // The end of output to the client.
  void end();
  bool has_ended() const { return ended_; }

 private:
  std::deque<modules::Output>& out_;
  std::uint64_t answered_bytes_ = 0;  // in this call
  bool stepped_aside_ = false, ended_ = false;
};

}  // namespace longhaul::http
