// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/dialer.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "proxy/flows/allow.h"
#include "proxy/net/marks.h"

namespace longhaul::flows {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

namespace {

enum class Shown { proxy, client_address_and_port, client_address };

ConnectOutcome outcome_of(const error_code& error) {
  if (!error) return ConnectOutcome::connected;
  if (error == asio::error::connection_refused || error == asio::error::connection_reset)
    return ConnectOutcome::refused;
  if (error == asio::error::host_unreachable) return ConnectOutcome::host_unreachable;
  if (error == asio::error::network_unreachable) return ConnectOutcome::network_unreachable;
  if (error == asio::error::timed_out) return ConnectOutcome::timed_out;
  return ConnectOutcome::failed;
}

bool is_tuple_taken(const error_code& error) {
  return error == asio::error::address_in_use || error.value() == EADDRNOTAVAIL;
}

bool is_silence(const error_code& error) {
  return error == asio::error::timed_out || error == asio::error::host_unreachable ||
         error == asio::error::network_unreachable;
}

bool set_flag(int socket, int level, int name) {
  const int one = 1;
  return ::setsockopt(socket, level, name, &one, sizeof one) == 0;
}

error_code last_error() { return {errno, boost::system::system_category()}; }

// Opens the socket and binds the address that the server should see.
error_code open_socket(tcp::socket& socket, const tcp::endpoint& server, const tcp::endpoint& client,
                       Shown shown) {
  error_code error;
  socket.close(error);
  socket.open(server.protocol(), error);
  if (error) return error;
  const int fd = socket.native_handle();
  // Fails without CAP_NET_ADMIN; then there is no interception either that could intercept the socket.
  const std::uint32_t mark = net::kOwnSocketMark;
  ::setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark);
  set_flag(fd, SOL_SOCKET, SO_KEEPALIVE);
  set_flag(fd, SOL_SOCKET, SO_OOBINLINE);  // urgent bytes stay in the stream instead of vanishing from it
  socket.set_option(tcp::no_delay(true), error);
  if (shown == Shown::proxy) return {};
  const bool v4 = server.protocol() == tcp::v4();
  if (!set_flag(fd, v4 ? SOL_IP : SOL_IPV6, v4 ? IP_TRANSPARENT : IPV6_TRANSPARENT)) return last_error();
  // The same client port may be in use towards another server: only the whole tuple must be unique.
  set_flag(fd, SOL_SOCKET, SO_REUSEADDR);
  tcp::endpoint local(config::unmapped(client.address()), client.port());
  if (shown == Shown::client_address) {
    set_flag(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT);  // the port is chosen at connect, unique per tuple
    local.port(0);
  }
  socket.bind(local, error);
  return error;
}

asio::awaitable<error_code> connect_within(tcp::socket& socket, tcp::endpoint server, milliseconds limit) {
  asio::steady_timer timer(co_await asio::this_coro::executor, limit);
  const auto [order, connect_error, timer_error] =
      co_await asio::experimental::make_parallel_group(socket.async_connect(server, asio::deferred),
                                                       timer.async_wait(asio::deferred))
          .async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  if (order[0] == 1 && !timer_error && connect_error) co_return make_error_code(asio::error::timed_out);
  co_return connect_error;
}

// One attempt with one source address; if the tuple is in use, another attempt with another port.
asio::awaitable<error_code> try_source(tcp::socket& socket, tcp::endpoint server, tcp::endpoint client,
                                       Shown shown, milliseconds limit) {
  error_code error = open_socket(socket, server, client, shown);
  if (!error) error = co_await connect_within(socket, server, limit);
  if (shown == Shown::client_address_and_port && is_tuple_taken(error)) {
    error = open_socket(socket, server, client, Shown::client_address);
    if (!error) error = co_await connect_within(socket, server, limit);
  }
  co_return error;
}

milliseconds until(Clock::time_point deadline) {
  return std::max(milliseconds(1), std::chrono::ceil<milliseconds>(deadline - Clock::now()));
}

}  // namespace

bool Dialer::may_dial(const DialRequest& request, const asio::ip::address& address) {
  if (request.may_dial && !request.may_dial(address)) return false;
  switch (request.check) {
    case DialRequest::Check::nothing:
      return !never_dialled(address);
    case DialRequest::Check::client:
      return client_may_dial(request.client ? request.client->address() : asio::ip::address(), address,
                             own_.at(Clock::now()));
    case DialRequest::Check::peer:
      return peer_may_dial(config_.allow, address, own_.at(Clock::now()));
  }
  return false;
}

// A server may grant more to some addresses (its own machine's, ours): those are never used for a client.
bool Dialer::can_show_client(const DialRequest& request, const asio::ip::address& server) {
  if (!can_show_clients_ || request.source == config::Source::proxy || !request.client) return false;
  const asio::ip::address client = config::unmapped(request.client->address());
  if (client.is_v4() != server.is_v4() || never_dialled(client) || is_loopback(client) ||
      is_link_local(client))
    return false;
  const auto& own = own_.at(Clock::now());
  return std::find(own.begin(), own.end(), client) == own.end();
}

asio::awaitable<void> Dialer::dial_address(const DialRequest& request, milliseconds limit, Dialled& result) {
  const tcp::endpoint server = result.server;
  const bool automatic = request.source == config::Source::automatic;
  result.source_fallback = false;
  if (!can_show_client(request, server.address())) {
    // source = client guarantees the client's address: if it cannot be used, the connection fails.
    result.error = request.source == config::Source::client
                       ? error_code(EADDRNOTAVAIL, boost::system::system_category())
                       : co_await try_source(result.socket, server, {}, Shown::proxy, limit);
    co_return;
  }
  const Clock::time_point deadline = Clock::now() + limit;
  const SourceMemory::Known known = memory_.about(server.address(), Clock::now());
  if (!automatic || known != SourceMemory::Known::only_proxy_answered) {
    // If the server has answered a client's address before, a missing reply is due to the server or the line,
    // not the route.
    const bool may_fall_back = automatic && known == SourceMemory::Known::nothing;
    // If the client's port is not given, any port may be used.
    const Shown shown = request.client->port() == 0 ? Shown::client_address : Shown::client_address_and_port;
    result.error = co_await try_source(result.socket, server, *request.client, shown,
                                       may_fall_back ? std::min(limit, config_.client_address_limit) : limit);
    if (!result.error || result.error == asio::error::connection_refused)
      memory_.learn(server.address(), SourceMemory::Known::client_answered, Clock::now());
    else if (automatic && is_silence(result.error))
      memory_.learn(server.address(), SourceMemory::Known::nothing, Clock::now());  // routes change
    const bool no_privilege = result.error == asio::error::no_permission;
    if (!automatic || !(no_privilege || (may_fall_back && is_silence(result.error)))) co_return;
    // A cancelled coroutine must not try another address.
    if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
      co_return;
  }
  result.error = co_await try_source(result.socket, server, {}, Shown::proxy, until(deadline));
  result.source_fallback = !result.error;
  if (!result.error) memory_.learn(server.address(), SourceMemory::Known::only_proxy_answered, Clock::now());
}

asio::awaitable<Dialled> Dialer::dial(DialRequest request) {
  co_await asio::this_coro::throw_if_cancelled(false);
  Dialled result(co_await asio::this_coro::executor);
  std::vector<asio::ip::address> addresses;
  const Destination& to = request.destination;
  if (to.host.empty()) {
    addresses.push_back(config::unmapped(to.address));
  } else {
    auto resolved = co_await resolver_.resolve(to.host, config_.name_limit);
    if (!resolved) {
      result.error = resolved.error();
      result.outcome = ConnectOutcome::name_not_found;
      co_return result;
    }
    for (const auto& address : *resolved) addresses.push_back(config::unmapped(address));
  }
  result.server = tcp::endpoint(addresses.front(), to.port);
  std::erase_if(addresses, [&](const auto& address) { return !may_dial(request, address); });
  if (addresses.empty()) {
    result.error = make_error_code(asio::error::access_denied);
    result.outcome = ConnectOutcome::not_allowed;
    co_return result;
  }
  const Clock::time_point deadline = Clock::now() + config_.connect_limit;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    result.server = tcp::endpoint(addresses[i], to.port);
    const bool last = i + 1 == addresses.size();
    const milliseconds left = until(deadline);
    co_await dial_address(request, last ? left : std::min(left, config_.address_limit), result);
    if (!result.error || result.error == asio::error::operation_aborted || Clock::now() >= deadline) break;
  }
  result.outcome = outcome_of(result.error);
  if (result.error) {
    error_code ignored;
    result.socket.close(ignored);
  }
  co_return result;
}

}  // namespace longhaul::flows
