// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/own_addresses.h"

#include "proxy/net/interfaces.h"

namespace longhaul::flows {

namespace ip = boost::asio::ip;

void OwnAddresses::ask(Clock::time_point now) {
  if (asked_ != Clock::time_point{} && now - asked_ < std::chrono::seconds(1)) return;
  const std::vector<net::Interface> all = net::interfaces();
  if (all.empty()) return;  // out of memory or descriptors: keep the previous list
  asked_ = now;
  addresses_.clear();
  networks_.clear();
  for (const net::Interface& each : all) {
    addresses_.insert(addresses_.end(), each.addresses.begin(), each.addresses.end());
    networks_.insert(networks_.end(), each.networks.begin(), each.networks.end());
  }
}

const std::vector<ip::address>& OwnAddresses::at(Clock::time_point now) {
  ask(now);
  return addresses_;
}

const std::vector<config::Network>& OwnAddresses::networks_at(Clock::time_point now) {
  ask(now);
  return networks_;
}

}  // namespace longhaul::flows
