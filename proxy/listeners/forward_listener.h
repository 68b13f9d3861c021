// SPDX-License-Identifier: Apache-2.0
// Explicit mode: one local port that leads to one server. The callback starts the flows.
#pragma once
#include "proxy/flows/accepted.h"
#include "proxy/net/accept_loop.h"

namespace longhaul::listeners {

class ForwardListener {
 public:
  // Throws net::ListenerError if the port is not available.
  ForwardListener(boost::asio::io_context& io, const config::Forward& forward, flows::FlowStarter start,
                  net::AcceptLoop::HasRoom has_room = {});

  boost::asio::ip::tcp::endpoint local_endpoint() const { return loop_.local_endpoint(); }
  net::AcceptLoop::Counters counters() const { return loop_.counters(); }

 private:
  net::AcceptLoop loop_;
};

}  // namespace longhaul::listeners
