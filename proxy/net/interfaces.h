// SPDX-License-Identifier: Apache-2.0
// This host's interfaces with their addresses, and the source address towards a destination, queried from the
// kernel.
#pragma once
#include <boost/asio/ip/address.hpp>
#include <optional>
#include <string>
#include <vector>

#include "proxy/config/network.h"

namespace longhaul::net {

struct Interface {
  std::string name;
  std::vector<boost::asio::ip::address> addresses;
  std::vector<config::Network> networks;  // networks of its addresses, by their prefixes
};

// Empty if the kernel refuses.
std::vector<Interface> interfaces();

// The address from which this host would send to `destination`. Sends no packet. Returns nullopt without a
// route.
std::optional<boost::asio::ip::address> source_towards(const boost::asio::ip::address& destination);

// The interface that has the address, or null.
const Interface* interface_with(const std::vector<Interface>& all, const boost::asio::ip::address& address);

}  // namespace longhaul::net
