// SPDX-License-Identifier: Apache-2.0
// Parses the text form of a TCP flow, such as "10.0.0.1:5000-10.0.2.2:445".
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <string>
#include <string_view>

#include "proxy/config/text_error.h"
#include "proxy/flows/accepted.h"

namespace longhaul::flows {

struct Tuple {
  boost::asio::ip::tcp::endpoint client;  // port 0 matches any
  Destination destination;
};

// CLIENT[:PORT]-SERVER:PORT. Addresses of either family, IPv6 with a port in brackets; the server may be a
// name.
config::TextResult<Tuple> parse_tuple(std::string_view text);
std::string to_text(const Tuple& tuple);

// An IPv4-mapped IPv6 address counts as the IPv4 address inside.
bool matches(const Tuple& tuple, const boost::asio::ip::tcp::endpoint& client,
             const Destination& destination);

}  // namespace longhaul::flows
