// SPDX-License-Identifier: Apache-2.0
// When a connection is reset after its last data: a reset discards what the kernel has not delivered yet, so
// it waits for that, within limits.
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>

#include "proxy/flows/lan_side.h"

namespace longhaul::flows {

class LateReset {
 public:
  // Resets the connection; called once, perhaps at once. It may destroy this object's owner later, not from
  // within.
  using Do = std::function<void()>;
  // `lan` outlives this object.
  explicit LateReset(LanSide& lan) : lan_(lan) {}

  // As soon as all that was written has been delivered.
  void after_delivery(Do reset);
  // When the client still has not read everything by the end of the limit.
  void in_the_end(Do reset);
  bool waits() const { return timer_ != nullptr; }

 private:
  // Of 10 ms: how long a client that reads slowly delays its own reset.
  static constexpr int kTries = 1000;
  void try_to(Do reset, int tries);

  LanSide& lan_;
  std::unique_ptr<boost::asio::steady_timer> timer_;  // few flows need it
};

}  // namespace longhaul::flows
