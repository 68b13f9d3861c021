// SPDX-License-Identifier: Apache-2.0
#include "proxy/intercept/tproxy_listener.h"

#include <algorithm>
#include <filesystem>

namespace longhaul::intercept {

namespace asio = boost::asio;
using asio::ip::tcp;
using net::AcceptLoop;

namespace {

constexpr std::string_view kEntry = "[intercept] port";

// Checks more than whether a socket can be created: IPv6 may be switched off by a sysctl.
bool has_ipv6() { return std::filesystem::exists("/proc/net/if_inet6"); }

}  // namespace

TproxyListener::TproxyListener(asio::io_context& io, std::uint16_t port, flows::FlowStarter start,
                               net::AcceptLoop::HasRoom has_room)
    : start_(std::move(start)) {
  const auto on_accepted = [this](tcp::socket socket, tcp::endpoint client) {
    on_accept(std::move(socket), client);
  };
  using net::Transparent;
  v4_.emplace(net::open_listener(io, {asio::ip::address_v4::loopback(), port}, kEntry, Transparent::yes),
              on_accepted, has_room);
  if (has_ipv6()) {
    v6_.emplace(
        net::open_listener(io, {asio::ip::address_v6::loopback(), this->port()}, kEntry, Transparent::yes),
        on_accepted, has_room);
  }
}

net::AcceptLoop::Counters TproxyListener::counters() const {
  net::AcceptLoop::Counters sum = v4_->counters();
  if (!v6_) return sum;
  const net::AcceptLoop::Counters v6 = v6_->counters();
  return {sum.accepted + v6.accepted, sum.refused + v6.refused, sum.errors + v6.errors};
}

void TproxyListener::on_accept(tcp::socket socket, tcp::endpoint client) {
  boost::system::error_code error;
  const tcp::endpoint wanted = socket.local_endpoint(error);
  // A local program connected to the port itself: dialling that address would loop.
  const auto& own = own_.at(std::chrono::steady_clock::now());
  if (error || std::find(own.begin(), own.end(), wanted.address()) != own.end()) {
    socket.set_option(asio::socket_base::linger(true, 0), error);
    socket.close(error);
    return;
  }
  start_({.socket = std::move(socket),
          .client = client,
          .destination = {.host = {}, .address = wanted.address(), .port = wanted.port()},
          .origin = flows::Origin::tproxy});
}

}  // namespace longhaul::intercept
