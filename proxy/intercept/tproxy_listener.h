// SPDX-License-Identifier: Apache-2.0
// Accepts the connections that the rules divert here: the socket's local address is the client's destination.
// The rules divert packets, the callback starts the flows.
#pragma once
#include <optional>

#include "proxy/flows/accepted.h"
#include "proxy/flows/own_addresses.h"
#include "proxy/net/accept_loop.h"

namespace longhaul::intercept {

class TproxyListener {
 public:
  // Listens on 127.0.0.1 and ::1, which only diverted packets and this machine reach. Throws
  // net::ListenerError.
  TproxyListener(boost::asio::io_context& io, std::uint16_t port, flows::FlowStarter start,
                 net::AcceptLoop::HasRoom has_room = {});
  TproxyListener(const TproxyListener&) = delete;
  TproxyListener& operator=(const TproxyListener&) = delete;

  std::uint16_t port() const { return v4_->local_endpoint().port(); }
  net::AcceptLoop::Counters counters() const;

 private:
  void on_accept(boost::asio::ip::tcp::socket socket, boost::asio::ip::tcp::endpoint client);

  flows::FlowStarter start_;
  flows::OwnAddresses own_;
  std::optional<net::AcceptLoop> v4_;
  std::optional<net::AcceptLoop> v6_;  // none on a machine without IPv6
};

}  // namespace longhaul::intercept
