// SPDX-License-Identifier: Apache-2.0
// The control API's HTTP/1.1 listener: connections, their limits in number, size and time, and their end.
// api.h interprets the requests.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <chrono>
#include <list>
#include <string>

#include "proxy/config/config.h"
#include "proxy/control/api.h"

namespace longhaul::control {

struct ServerLimits {
  std::size_t connections = 32;
  std::uint32_t header_bytes = 8 * 1024;
  std::size_t body_bytes = 16 * 1024;
  std::chrono::milliseconds header_time{
      15'000};  // from the connection's start, or its last answer, to a complete header
  std::chrono::milliseconds body_time{5'000};
  std::chrono::milliseconds answer_time{15'000};  // to write one answer to a client that reads slowly
};

// Must outlive its own `run`. Lives on the loop that owns the flows.
class Server {
 public:
  // Binds. Throws std::runtime_error with one clear sentence on failure.
  Server(boost::asio::io_context& loop, Controlled& daemon, std::string token, const config::HostPort& listen,
         ServerLimits limits = {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Completes after `stop`, when the last connection is closed.
  boost::asio::awaitable<void> run();
  void stop();

  const boost::asio::ip::tcp::endpoint& endpoint() const { return endpoint_; }
  const ApiCounters& counters() const { return counters_; }

 private:
  using Stream = boost::beast::tcp_stream;
  using Streams = std::list<Stream>;

  boost::asio::awaitable<void> serve(Streams::iterator place);
  boost::asio::awaitable<void> converse(Stream& stream);
  boost::asio::awaitable<void> turn_away(Stream& stream);

  Api api_;
  ServerLimits limits_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::ip::tcp::endpoint endpoint_;
  boost::asio::steady_timer changed_;  // cancelled when a connection ends, and at `stop`
  Streams streams_;                    // a connection's coroutine owns its place
  ApiCounters counters_;
  bool stopping_ = false;
};

}  // namespace longhaul::control
