// SPDX-License-Identifier: Apache-2.0
// The control API's HTTP/1.1 listeners, on loopback and, if configured, with TLS for other machines:
// connections, their limits in number, size and time, and their end. api.h interprets the requests.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <chrono>
#include <list>
#include <memory>
#include <string>

#include "proxy/config/config.h"
#include "proxy/control/api.h"
#include "proxy/identity/web_tls.h"

namespace longhaul::control {

struct ServerLimits {
  std::size_t connections = 32;  // per listener: other machines cannot block this machine's connections
  std::uint32_t header_bytes = 8 * 1024;
  std::size_t body_bytes = 16 * 1024;
  std::chrono::milliseconds header_time{
      15'000};  // from the connection's start, or its last response, to a complete header
  std::chrono::milliseconds body_time{5'000};
  std::chrono::milliseconds handshake_time{5'000};
  std::chrono::milliseconds handshake_rest{50};   // between two handshakes: at most 20 signatures per second
  std::chrono::milliseconds answer_time{15'000};  // to write one response to a client that reads slowly
};

// Must outlive its own `run`. Used on the event loop that owns the flows.
class Server {
 public:
  // Binds. Throws std::runtime_error with one clear sentence on failure.
  Server(boost::asio::io_context& loop, Controlled& daemon, std::string token, const config::HostPort& listen,
         ServerLimits limits = {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Adds a second listener, where everything except the page's own files requires the token. Call before
  // `run`; throws like the constructor. Returns the address where it listens.
  boost::asio::ip::tcp::endpoint listen_tls(const config::HostPort& listen, identity::WebContext tls);
  // Sets the certificate for new connections.
  void use(identity::WebContext tls);

  // Completes after `stop`, when the last connection is closed.
  boost::asio::awaitable<void> run();
  void stop();

  const boost::asio::ip::tcp::endpoint& endpoint() const { return doors_.front().endpoint; }
  const ApiCounters& counters() const { return counters_; }

 private:
  using Stream = boost::beast::tcp_stream;
  using Streams = std::list<Stream>;

  struct Door {
    Door(boost::asio::io_context& loop, const config::HostPort& listen, std::string_view key);
    boost::asio::ip::tcp::acceptor acceptor;
    boost::asio::ip::tcp::endpoint endpoint;
    boost::asio::steady_timer rest;
    identity::WebContext tls;  // null for plain HTTP
    std::size_t connections = 0;
  };

  boost::asio::awaitable<void> accept(Door& door);
  boost::asio::awaitable<void> serve(Door& door, Streams::iterator place);
  boost::asio::awaitable<void> serve_tls(identity::WebContext context, Stream& stream);
  template <class AnyStream>
  boost::asio::awaitable<void> converse(AnyStream& stream, Stream& tcp);
  boost::asio::awaitable<void> turn_away(Stream& stream);

  Api api_;
  ServerLimits limits_;
  boost::asio::io_context& loop_;
  std::list<Door> doors_;              // the first is the plain one
  std::size_t accepting_ = 0;          // doors whose coroutine is running
  boost::asio::steady_timer changed_;  // cancelled when a connection or a door's coroutine ends
  Streams streams_;                    // a connection's coroutine owns its place
  ApiCounters counters_;
  bool stopping_ = false;
};

}  // namespace longhaul::control
