// SPDX-License-Identifier: Apache-2.0
// The control connection between a console and its agents, over TCP: greeted, framed, never waiting for ever.
// Every failure is Trouble with a sentence. Leaves the meaning of messages to the tools.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <string>
#include <string_view>

#include "tools/measuring/greeting.h"
#include "tools/measuring/messages.h"

namespace longhaul::measuring {

struct Endpoint {
  std::string host;  // a name or an address, IPv6 without brackets
  std::uint16_t port = 0;
};
// "host:port", "[address]:port", or either without a port, for which `default_port` stands. Throws Trouble.
Endpoint parse_endpoint(std::string_view text, std::uint16_t default_port);
std::string to_text(const Endpoint& endpoint);

// One at a time may send, and one at a time receive; the two may overlap.
class Connection {
 public:
  // Of a socket that is connected and was greeted; see dial() and welcome().
  explicit Connection(boost::asio::ip::tcp::socket socket, std::string peer);

  // Name the message before: g++ 12 destroys twice what is built inside `co_await connection.send({…})`.
  boost::asio::awaitable<void> send(const boost::json::object& message);
  // The next message. A message {"trouble": "…"} arrives as Trouble with that sentence. When `patience` runs
  // out the connection is closed: answers could no longer be matched to requests.
  boost::asio::awaitable<boost::json::object> receive(std::chrono::milliseconds patience);
  // Tells the other side why this one ends, as far as that can be done without waiting long.
  boost::asio::awaitable<void> tell_trouble(std::string sentence);
  void close();

  const std::string& peer() const { return peer_; }  // for messages: what the user called it, or its address
  boost::asio::ip::address local_address() const;
  boost::asio::ip::address remote_address() const;

 private:
  struct Received {
    boost::json::object message;
    std::string trouble;  // empty: there is a message
  };
  friend boost::asio::awaitable<void> greet(Connection&, const Identity&, Side, std::chrono::milliseconds);

  boost::asio::awaitable<void> send_encoded(std::string encoded);
  boost::asio::awaitable<Received> receive_next();

  boost::asio::ip::tcp::socket socket_;
  std::string peer_;
  MessageReader reader_;
};

// Listens at the first address that `at` resolves to; "::" takes IPv4 too. Throws Trouble where the port is
// taken.
boost::asio::ip::tcp::acceptor listen(boost::asio::any_io_executor executor, const Endpoint& at);
// Of an accepted socket: greets, and tells the other side what is wrong with it before it throws.
boost::asio::awaitable<Connection> welcome(boost::asio::ip::tcp::socket socket, Identity identity,
                                           std::chrono::milliseconds patience);
// Tries each address that the name has.
boost::asio::awaitable<Connection> dial(Endpoint to, Identity identity, std::chrono::milliseconds patience);

}  // namespace longhaul::measuring
