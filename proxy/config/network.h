// SPDX-License-Identifier: Apache-2.0
// An address prefix of either family, and whether an address lies in it. Names are not resolved here.
#pragma once
#include <boost/asio/ip/address.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace longhaul::config {

struct Network {
  boost::asio::ip::address address;  // bits after the prefix are zero; never an IPv4-mapped IPv6 address
  unsigned prefix_length = 0;        // 0 to 32, or to 128
  bool operator==(const Network&) const = default;
};

// "10.1.0.0/16", "fd00::/8", or a single address. Returns nullopt if the text is neither, or has bits set
// after the prefix.
std::optional<Network> parse_network(std::string_view text);
// The same, but clears the bits after the prefix: the probable intention, for messages.
std::optional<Network> parse_network_loosely(std::string_view text);
// The network with that prefix length that contains the address.
Network network_of(const boost::asio::ip::address& address, unsigned prefix_length);
std::string to_text(const Network& network);
// An IPv4-mapped IPv6 address counts as the IPv4 address it stands for.
bool contains(const Network& network, const boost::asio::ip::address& address);

// An IPv4 or IPv6 address without scope; an IPv4-mapped address is returned as IPv4.
std::optional<boost::asio::ip::address> parse_address(std::string_view text);
// The IPv4 address inside an IPv4-mapped IPv6 address; any other address unchanged.
boost::asio::ip::address unmapped(const boost::asio::ip::address& address);

}  // namespace longhaul::config
