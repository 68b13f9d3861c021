// SPDX-License-Identifier: Apache-2.0
// A client's connection as a listener passes it on: the socket, the destination, and the kind of listener
// that accepted it.
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>

#include "proxy/config/config.h"
#include "proxy/link/destination.h"

namespace longhaul::flows {

using link::ConnectOutcome;
using link::Destination;

enum class Origin : std::uint8_t { tproxy, forward, socks };

struct Accepted {
  boost::asio::ip::tcp::socket socket;
  boost::asio::ip::tcp::endpoint client;
  Destination destination;
  Origin origin = Origin::forward;
  // Returns the proxy's reply for this outcome, written to the client before anything else. Empty function:
  // no reply.
  std::function<std::string(ConnectOutcome)> answer{};
};

// Takes a client's connection; never fails, never blocks. Called on the loop that owns the flows.
using FlowStarter = std::function<void(Accepted)>;

}  // namespace longhaul::flows
