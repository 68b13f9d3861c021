// SPDX-License-Identifier: Apache-2.0
// A client's connection as a listener hands it on: the socket, where the client wants to go, and how it came.
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>

#include "proxy/config/config.h"

namespace longhaul::flows {

// Where a flow goes: an address, or a name that the far side resolves (SOCKS5, forwards).
struct Destination {
  std::string host{};                  // a name, or empty when `address` counts
  boost::asio::ip::address address{};  // used when `host` is empty
  std::uint16_t port = 0;
  std::string to_text() const;  // "name:port", "1.2.3.4:port", "[::1]:port"
};

enum class Origin : std::uint8_t { tproxy, forward, socks };

// How an explicit client that waits for an answer is told the outcome of the far connect. The SOCKS5 listener
// sets it; a forward and a transparent flow have nothing to say and leave it empty.
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

struct Accepted {
  boost::asio::ip::tcp::socket socket;
  boost::asio::ip::tcp::endpoint client;
  Destination destination;
  Origin origin = Origin::forward;
  // Bytes of the answer for this outcome, written to the client before anything else; empty function: none.
  std::function<std::string(ConnectOutcome)> answer{};
};

// Takes a client's connection; never fails, never blocks. Called on the loop that owns the flows.
using FlowStarter = std::function<void(Accepted)>;

}  // namespace longhaul::flows
