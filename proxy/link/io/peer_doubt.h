// SPDX-License-Identifier: Apache-2.0
// Whether the peer's process has ended, when its end of the control connection was closed: the kernel ends
// the connections of a process that dies, and no more UDP packets arrive. If only the connection was cut on
// the way, UDP packets arrive, or a new connection is made, within a short time.
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
  // Calls `gone` once, from the loop, if the doubt is not over by then.
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
