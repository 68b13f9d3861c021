// SPDX-License-Identifier: Apache-2.0
// Decides whether the peer's process has ended after its end of the control connection was closed. When a
// process dies, the kernel closes its connections, and no more UDP packets arrive. If only the connection was
// cut on the way, UDP packets or a new connection arrive within a short time.
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "proxy/link/types.h"

namespace longhaul::link {

class PeerDoubt {
 public:
  explicit PeerDoubt(boost::asio::io_context& io) : timer_(io), self_(std::make_shared<PeerDoubt*>(this)) {}
  ~PeerDoubt() { *self_ = nullptr; }
  PeerDoubt(const PeerDoubt&) = delete;
  PeerDoubt& operator=(const PeerDoubt&) = delete;

  bool is_in_doubt() const { return in_doubt_; }
  void set(bool in_doubt) { in_doubt_ = in_doubt; }
  // Calls `gone` once, from the event loop, if it is still in doubt by then.
  void watch(Duration round_trip, std::function<void()> gone) {
    timer_.expires_after(std::chrono::seconds(2) + 4 * round_trip);
    timer_.async_wait([self = self_, gone = std::move(gone)](boost::system::error_code error) {
      if (error || !*self || !std::exchange((*self)->in_doubt_, false)) return;
      gone();
    });
  }
  void stop() { timer_.cancel(); }

 private:
  bool in_doubt_ = false;
  boost::asio::steady_timer timer_;
  std::shared_ptr<PeerDoubt*> self_;
};

}  // namespace longhaul::link
