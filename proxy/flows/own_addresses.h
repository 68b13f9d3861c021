// SPDX-License-Identifier: Apache-2.0
// The addresses and networks of this machine's interfaces, queried from the kernel and cached for a second.
// allow.h decides how they may be used.
#pragma once
#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <vector>

#include "proxy/config/network.h"

namespace longhaul::flows {

class OwnAddresses {
 public:
  using Clock = std::chrono::steady_clock;
  // A query takes about 20 µs, too long for each of thousands of connects per second. So a new address is
  // noticed up to a second late.
  const std::vector<boost::asio::ip::address>& at(Clock::time_point now);
  // The networks of these addresses, by their prefixes, which this machine reaches without a router.
  const std::vector<config::Network>& networks_at(Clock::time_point now);

 private:
  void ask(Clock::time_point now);

  std::vector<boost::asio::ip::address> addresses_;
  std::vector<config::Network> networks_;
  Clock::time_point asked_{};
};

}  // namespace longhaul::flows
