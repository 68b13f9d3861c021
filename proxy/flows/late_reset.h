// SPDX-License-Identifier: Apache-2.0
// Resets a connection after its last data: a reset discards data that the kernel has not delivered yet, so it
// waits for delivery, within limits.
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>

#include "proxy/flows/lan_side.h"

namespace longhaul::flows {

class LateReset {
 public:
  // Resets the connection; called once, possibly immediately. It may destroy this object's owner, but only
  // after it has returned.
  using Do = std::function<void()>;
  // `lan` outlives this object.
  explicit LateReset(LanSide& lan) : lan_(lan) {}

  // As soon as all written data has been delivered.
  void after_delivery(Do reset);
  // At the end of the limit, whether or not the client has read everything. A later after_delivery() replaces
  // it.
  void in_the_end(Do reset);
  bool waits() const { return timer_ != nullptr; }

 private:
  // Tries every 10 ms: how long a client that reads slowly can delay its own reset.
  static constexpr int kTries = 1000;
  void try_to(Do reset, int tries);

  LanSide& lan_;
  std::unique_ptr<boost::asio::steady_timer> timer_;  // few flows need it
};

}  // namespace longhaul::flows
