// SPDX-License-Identifier: Apache-2.0
// Explicit mode for any destination: SOCKS5 (RFC 1928) with CONNECT, without authentication; names are
// resolved at the far side. The callback starts the flow, and the client receives a reply with the result.
#pragma once
#include <chrono>
#include <memory>

#include "proxy/flows/accepted.h"
#include "proxy/net/accept_loop.h"

namespace longhaul::listeners {

struct Socks5Limits {
  std::chrono::milliseconds handshake{10'000};  // from the connection to the request
  std::size_t handshakes = 256;                 // in progress; further connections are reset
  std::size_t handshakes_per_source = 64;       // the same per client address
};

class Socks5Listener {
 public:
  // Throws net::ListenerError if the port is not available.
  Socks5Listener(boost::asio::io_context& io, const config::HostPort& listen, flows::FlowStarter start,
                 net::AcceptLoop::HasRoom has_room = {}, Socks5Limits limits = {});
  ~Socks5Listener();  // handshakes in progress end with a reset

  boost::asio::ip::tcp::endpoint local_endpoint() const { return loop_.local_endpoint(); }
  net::AcceptLoop::Counters counters() const { return loop_.counters(); }
  std::size_t handshakes() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // owns the handshakes
  net::AcceptLoop loop_;
};

}  // namespace longhaul::listeners
