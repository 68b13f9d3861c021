// SPDX-License-Identifier: Apache-2.0
// The addresses and networks of this machine's interfaces, asked from the kernel and remembered for a second.
// What may be done with them is decided in allow.h.
#pragma once
#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <vector>

#include "proxy/config/network.h"

namespace longhaul::flows {

class OwnAddresses {
 public:
  using Clock = std::chrono::steady_clock;
  // Asking costs some 20 µs, too much for each of thousands of dials a second; an address that appears is
  // known a second later.
  const std::vector<boost::asio::ip::address>& at(Clock::time_point now);
  // The networks that they are in by their prefixes: what this machine reaches without a router.
  const std::vector<config::Network>& networks_at(Clock::time_point now);

 private:
  void ask(Clock::time_point now);

  std::vector<boost::asio::ip::address> addresses_;
  std::vector<config::Network> networks_;
  Clock::time_point asked_{};
};

}  // namespace longhaul::flows
