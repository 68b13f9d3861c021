// SPDX-License-Identifier: Apache-2.0
// Asio's side of the control connection: time-outs, resolving, and sentences for what the kernel says.
#include "tools/measuring/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <charconv>

#include "tools/measuring/trouble.h"

namespace longhaul::measuring {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;
using namespace asio::experimental::awaitable_operators;

constexpr auto kOutcome = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kLongestGreeting = 4096;  // bytes a stranger may make us keep
constexpr milliseconds kFarewell{1000};         // for a last sentence to one that may be gone
constexpr unsigned kUnansweredMs = 30'000;      // after that the kernel takes the other host for gone
constexpr std::size_t kReadAtOnce = 64 * 1024;

awaitable<void> after(milliseconds time) {
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  co_await timer.async_wait(kOutcome);
}

std::string seconds_of(milliseconds time) {
  if (time.count() % 1000 == 0) return std::to_string(time.count() / 1000) + " s";
  return std::to_string(time.count()) + " ms";
}

void prepare(tcp::socket& socket) {
  error_code ignored;  // a connection without these works, only less well
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  using UserTimeout = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;
  socket.set_option(UserTimeout(kUnansweredMs), ignored);
}

std::string refusal(const Endpoint& to, const Identity& identity, const error_code& error) {
  if (error == asio::error::connection_refused)
    return "nothing listens at " + to_text(to) + "; start `" + identity.program + " agent` there";
  return "no connection to " + to_text(to) + ": " + error.message();
}

}  // namespace

Endpoint parse_endpoint(std::string_view text, std::uint16_t default_port) {
  const auto wrong = [&](const char* why) {
    return Trouble("'" + std::string(text) + "' is not HOST:PORT: " + why);
  };
  Endpoint endpoint{{}, default_port};
  std::string_view port;
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) throw wrong("the bracket is not closed");
    endpoint.host = text.substr(1, end - 1);
    port = text.substr(end + 1);
    if (!port.empty() && port[0] != ':') throw wrong("a colon and a port come after the bracket");
  } else if (const auto colon = text.rfind(':'); colon != std::string_view::npos && text.find(':') == colon) {
    endpoint.host = text.substr(0, colon);
    port = text.substr(colon);
  } else {
    endpoint.host = text;  // without a port; with several colons it is an IPv6 address
  }
  if (endpoint.host.empty()) throw wrong("the host is missing");
  if (!port.empty()) {
    port.remove_prefix(1);
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
    if (port.empty() || error != std::errc{} || end != port.data() + port.size())
      throw wrong("a port is a number up to 65535");
  }
  return endpoint;
}

std::string to_text(const Endpoint& endpoint) {
  const bool brackets = endpoint.host.find(':') != std::string::npos;
  return (brackets ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
}

Connection::Connection(tcp::socket socket, std::string peer)
    : socket_(std::move(socket)), peer_(std::move(peer)), reader_(kLongestGreeting) {
  prepare(socket_);
}

awaitable<void> Connection::send(const boost::json::object& message) { return send_encoded(encode(message)); }

awaitable<void> Connection::send_encoded(std::string encoded) {
  const auto [error, size] = co_await asio::async_write(socket_, asio::buffer(encoded), kOutcome);
  if (error) throw Trouble("the connection to " + peer_ + " is lost: " + error.message());
}

// Its troubles are values: `a || b` waits for b when a throws, which would tell a lost connection as a silent
// one.
awaitable<Connection::Received> Connection::receive_next() {
  std::array<std::byte, kReadAtOnce> buffer;
  Received received;
  for (;;) {
    auto next = reader_.next();
    if (!next) {
      received.trouble =
          peer_ + (next.error() == MessageError::too_long ? " sent a message that is not of this protocol"
                                                          : " sent a message that is not a JSON object");
      co_return received;
    }
    if (*next) {
      received.message = std::move(**next);
      co_return received;
    }
    const auto [error, size] = co_await socket_.async_read_some(asio::buffer(buffer), kOutcome);
    if (error) {
      received.trouble = error == asio::error::eof
                             ? peer_ + " has closed the connection"
                             : "the connection to " + peer_ + " is lost: " + error.message();
      co_return received;
    }
    reader_.feed(Bytes(buffer).first(size));
  }
}

awaitable<boost::json::object> Connection::receive(milliseconds patience) {
  auto first = co_await (receive_next() || after(patience));
  if (first.index() == 1) {
    close();
    throw Trouble("no message received from " + peer_ + " for " + seconds_of(patience));
  }
  Received received = std::move(std::get<0>(first));
  if (!received.trouble.empty()) throw Trouble(received.trouble);
  if (received.message.contains("trouble"))
    throw Trouble(peer_ + " says: " + fit_to_print(text(received.message, "trouble", kLongestMessage)));
  co_return std::move(received.message);
}

awaitable<void> Connection::tell_trouble(std::string sentence) {
  boost::json::object message;
  message["trouble"] = std::move(sentence);
  const std::string encoded = encode(message);
  co_await (asio::async_write(socket_, asio::buffer(encoded), kOutcome) || after(kFarewell));
}

void Connection::close() {
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
}

asio::ip::address Connection::local_address() const {
  error_code error;
  return socket_.local_endpoint(error).address();
}

asio::ip::address Connection::remote_address() const {
  error_code error;
  return socket_.remote_endpoint(error).address();
}

awaitable<void> greet(Connection& connection, const Identity& identity, Side side, milliseconds patience) {
  Greeting greeting{identity, side};
  const auto hello = greeting.hello();
  co_await connection.send(hello);
  const auto their_hello = co_await connection.receive(patience);
  greeting.read_hello(their_hello, connection.peer());
  const auto proof = greeting.proof();
  if (side == Side::dials) co_await connection.send(proof);
  const auto their_proof = co_await connection.receive(patience);
  greeting.read_proof(their_proof, connection.peer());
  if (side == Side::listens) co_await connection.send(proof);
  connection.reader_.allow(kLongestMessage);
}

tcp::acceptor listen(asio::any_io_executor executor, const Endpoint& at) {
  error_code error;
  tcp::resolver resolver{executor};
  const auto found = resolver.resolve(at.host, std::to_string(at.port), tcp::resolver::passive, error);
  if (error || found.empty())
    throw Trouble("'" + at.host + "' is not an address of this host: " + error.message());
  const tcp::endpoint endpoint = *found.begin();
  tcp::acceptor acceptor{executor};
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.address() == asio::ip::address_v6::any())
    acceptor.set_option(asio::ip::v6_only(false), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error == asio::error::address_in_use)
    throw Trouble("the port of " + to_text(at) + " is in use by another program");
  if (error) throw Trouble("cannot listen at " + to_text(at) + ": " + error.message());
  return acceptor;
}

awaitable<Connection> welcome(tcp::socket socket, Identity identity, milliseconds patience) {
  error_code error;
  const auto from = socket.remote_endpoint(error);
  const std::string peer = error ? "the client" : to_text({from.address().to_string(), from.port()});
  Connection connection{std::move(socket), peer};
  std::string trouble;
  try {
    co_await greet(connection, identity, Side::listens, patience);
  } catch (const Trouble& caught) {
    trouble = caught.what();
  }
  if (trouble.empty()) co_return connection;
  co_await connection.tell_trouble(trouble);
  throw Trouble(trouble);
}

awaitable<Connection> dial(Endpoint to, Identity identity, milliseconds patience) {
  const auto executor = co_await asio::this_coro::executor;
  tcp::resolver resolver{executor};
  tcp::socket socket{executor};
  const std::string port = std::to_string(to.port);
  auto resolved = co_await (resolver.async_resolve(to.host, port, kOutcome) || after(patience));
  if (resolved.index() == 1) throw Trouble("cannot resolve " + to.host + ": no answer from the name server");
  const auto& [failure, addresses] = std::get<0>(resolved);
  if (failure) throw Trouble("cannot resolve " + to.host + ": " + failure.message());
  auto connected = co_await (asio::async_connect(socket, addresses, kOutcome) || after(patience));
  if (connected.index() == 1)
    throw Trouble("no answer from " + to_text(to) + " within " + seconds_of(patience) +
                  "; is the host up and the port open?");
  if (const auto& error = std::get<0>(std::get<0>(connected))) throw Trouble(refusal(to, identity, error));
  Connection connection{std::move(socket), to_text(to)};
  co_await greet(connection, identity, Side::dials, patience);
  co_return connection;
}

}  // namespace longhaul::measuring
