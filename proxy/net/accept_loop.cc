// SPDX-License-Identifier: Apache-2.0
#include "proxy/net/accept_loop.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "proxy/log/log.h"

namespace longhaul::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

namespace {

constexpr int kSynAckRetries = 2;
constexpr int kBurst = 64;  // connections accepted before other flows have their turn
constexpr auto kFirstPause = 10ms;
constexpr auto kLongestPause = 1000ms;

std::string endpoint_text(const tcp::endpoint& at) {
  const std::string host = at.address().to_string();
  return (at.address().is_v6() ? "[" + host + "]:" : host + ":") + std::to_string(at.port());
}

std::string why(const error_code& error, const tcp::endpoint& at) {
  switch (error.value()) {
    case EADDRINUSE:
      return "another program already listens on port " + std::to_string(at.port()) +
             ", possibly another longhaul; ss -lntp shows which";
    case EACCES:
      return "ports below 1024 need root or CAP_NET_BIND_SERVICE";
    case EADDRNOTAVAIL:
      return at.address().to_string() + " is not an address of this host";
    case EPERM:
      return "transparent sockets need root or CAP_NET_ADMIN";
    case EAFNOSUPPORT:
      return "this host does not support " + std::string(at.address().is_v6() ? "IPv6" : "IPv4");
    default:
      return error.message();
  }
}

// One connection failed before it was accepted; the next one may be fine (accept(2)).
bool concerns_one_connection(const error_code& error) {
  switch (error.value()) {
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case EINTR:
    case EPERM:
      return true;
    default:
      return false;
  }
}

}  // namespace

tcp::acceptor open_listener(asio::io_context& io, const config::HostPort& at, std::string_view entry) {
  error_code error;
  const auto address = asio::ip::make_address(at.host, error);
  if (error)
    throw ListenerError(
        std::string(entry) + ": \"" + at.host +
        "\" is not an IP address; a listener needs one, for example 127.0.0.1, 0.0.0.0 or [::].");
  return open_listener(io, tcp::endpoint(address, at.port), entry, Transparent::no);
}

tcp::acceptor open_listener(asio::io_context& io, const tcp::endpoint& at, std::string_view entry,
                            Transparent transparent) {
  tcp::acceptor acceptor(io);
  error_code error;
  acceptor.open(at.protocol(), error);
  const int one = 1;
  if (!error) {
    acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (at.address().is_v6()) acceptor.set_option(asio::ip::v6_only(transparent == Transparent::yes), error);
    // Inherited by every accepted socket: urgent bytes stay in the stream, and keep-alives detect dead
    // clients.
    ::setsockopt(acceptor.native_handle(), SOL_SOCKET, SO_OOBINLINE, &one, sizeof one);
    ::setsockopt(acceptor.native_handle(), SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    acceptor.set_option(tcp::no_delay(true), error);
  }
  if (!error && transparent == Transparent::yes) {
    const bool v4 = at.address().is_v4();
    // Half-open connections expire after 7 s instead of 63 s: a client without an answer retransmits its SYN.
    ::setsockopt(acceptor.native_handle(), IPPROTO_TCP, TCP_SYNCNT, &kSynAckRetries, sizeof kSynAckRetries);
    if (::setsockopt(acceptor.native_handle(), v4 ? SOL_IP : SOL_IPV6, v4 ? IP_TRANSPARENT : IPV6_TRANSPARENT,
                     &one, sizeof one) != 0)
      error.assign(errno, boost::system::system_category());
  }
  if (!error) acceptor.bind(at, error);
  if (!error) acceptor.listen(kBacklog, error);
  if (!error) acceptor.native_non_blocking(true, error);
  if (!error) acceptor.non_blocking(true, error);
  if (error)
    throw ListenerError(std::string(entry) + ": cannot listen on " + endpoint_text(at) + ": " +
                        why(error, at) + ".");
  return acceptor;
}

struct AcceptLoop::State {
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  OnAccept on_accept;
  HasRoom has_room;
  Counters counters;
  bool stopped = false;
};

AcceptLoop::AcceptLoop(tcp::acceptor acceptor, OnAccept on_accept, HasRoom has_room) {
  const auto executor = acceptor.get_executor();
  state_ = std::make_shared<State>(State{std::move(acceptor),
                                         asio::steady_timer(executor),
                                         std::move(on_accept),
                                         std::move(has_room),
                                         {},
                                         false});
  asio::co_spawn(executor, run(state_), asio::detached);
}

AcceptLoop::~AcceptLoop() {
  state_->stopped = true;
  error_code ignored;
  state_->acceptor.close(ignored);
  state_->pause.cancel();
}

tcp::endpoint AcceptLoop::local_endpoint() const { return state_->acceptor.local_endpoint(); }

AcceptLoop::Counters AcceptLoop::counters() const { return state_->counters; }

asio::awaitable<void> AcceptLoop::run(std::shared_ptr<State> state) {
  constexpr auto kWait = asio::as_tuple(asio::use_awaitable);
  auto pause = kFirstPause;
  while (!state->stopped) {
    co_await state->acceptor.async_wait(tcp::acceptor::wait_read, kWait);
    for (int taken = 0; taken < kBurst && !state->stopped; ++taken) {
      error_code error;
      tcp::endpoint client;
      tcp::socket socket(state->acceptor.get_executor());
      state->acceptor.accept(socket, client, error);
      if (!error) {
        pause = kFirstPause;
        if (state->has_room && !state->has_room(client.address())) {
          ++state->counters.refused;
          socket.set_option(asio::socket_base::linger(true, 0), error);
          socket.close(error);  // Asio's destructor would clear the option and close without a reset
        } else {
          ++state->counters.accepted;
          state->on_accept(std::move(socket), client);
        }
      } else if (error == asio::error::would_block || error == asio::error::try_again) {
        break;
      } else if (!concerns_one_connection(error) && !state->stopped) {
        ++state->counters.errors;
        log::warn("accept", {{"listen", endpoint_text(state->acceptor.local_endpoint())},
                             {"reason", error.message()},
                             {"retry_ms", pause.count()}});
        state->pause.expires_after(pause);
        pause = std::min(pause * 2, kLongestPause);
        co_await state->pause.async_wait(kWait);
      }
    }
  }
}

}  // namespace longhaul::net
