// SPDX-License-Identifier: Apache-2.0
// Runs the steps of incoming handshakes one at a time, with pauses in which the event loop serves flows.
// Together they use at most a tenth of the CPU, and known peers have priority.
#pragma once
#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>

#include "proxy/link/io/handshake_gate.h"

namespace longhaul::link {

class HandshakeTurns {
 public:
  // After a step that took t, the next one waits for kPause * t, unless it is a known peer's.
  static constexpr int kPause = 9;

  // Handlers that are still queued in the executor when this object is destroyed have no effect.
  explicit HandshakeTurns(const boost::asio::any_io_executor& executor)
      : pause_(executor), self_(std::make_shared<HandshakeTurns*>(this)) {}
  ~HandshakeTurns();
  HandshakeTurns(const HandshakeTurns&) = delete;
  HandshakeTurns& operator=(const HandshakeTurns&) = delete;

  // Completes when the caller may take one step, which ends with done(); never inside this call.
  boost::asio::awaitable<void> next(Standing standing);
  // The processor time of the step.
  void done(Duration processor);

 private:
  using Waiting = std::shared_ptr<boost::asio::steady_timer>;  // cancelled when its turn has come
  void begin_next();
  // Calls begin_next() in a later turn of the event loop, unless `turn` is no longer awaited.
  void begin_next_later(const Waiting& turn);

  boost::asio::steady_timer pause_;
  std::array<std::deque<Waiting>, 3> waiting_;  // by standing
  bool taken_ = false;                          // a handshake has the turn
  bool pausing_ = false;                        // until `pause_` expires only known peers have turns
  // Points to null after the destructor: an expired timer cannot be cancelled.
  std::shared_ptr<HandshakeTurns*> self_;
};

// The processor time that this thread has used.
Duration thread_time();

}  // namespace longhaul::link
