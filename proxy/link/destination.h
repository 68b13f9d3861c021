// SPDX-License-Identifier: Apache-2.0
// The destination of a flow, as given by listeners and carried by the link, and the outcome of the connect.
// The dialer decides whether it is allowed.
#pragma once
#include <boost/asio/ip/address.hpp>
#include <cstdint>
#include <string>

namespace longhaul::link {

// An address, or a name to be resolved at the far side (SOCKS5, forwards).
struct Destination {
  std::string host{};                  // a name; empty if `address` is used
  boost::asio::ip::address address{};  // used when `host` is empty
  std::uint16_t port = 0;
  std::string to_text() const;  // "name:port", "1.2.3.4:port", "[::1]:port"
};

// Sent in the answer to OPEN, so that a SOCKS client learns why its connection was refused.
enum class ConnectOutcome : std::uint8_t {
  connected,
  refused,
  host_unreachable,
  network_unreachable,
  not_allowed,
  timed_out,
  name_not_found,
  failed,
  client_not_allowed  // the far side does not show this client's address to servers
};

}  // namespace longhaul::link
