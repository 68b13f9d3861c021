// SPDX-License-Identifier: Apache-2.0
// A listening socket and the loop that accepts connections from it: errors with a back-off, refusal over a
// limit, one clear sentence if the port is not available. The listeners handle the connections.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "proxy/config/config.h"

namespace longhaul::net {

// The configuration is invalid, or does not fit this machine; the text is a sentence for the operator.
class ListenerError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Limit of connections that are half-open or not yet accepted; the kernel caps it at net.core.somaxconn.
inline constexpr int kBacklog = 4096;

enum class Transparent : std::uint8_t { no, yes };

// Binds and listens. `entry` names the place in the configuration, as in "[socks] listen". Throws
// ListenerError.
boost::asio::ip::tcp::acceptor open_listener(boost::asio::io_context& io, const config::HostPort& at,
                                             std::string_view entry);
boost::asio::ip::tcp::acceptor open_listener(boost::asio::io_context& io,
                                             const boost::asio::ip::tcp::endpoint& at, std::string_view entry,
                                             Transparent transparent);

class AcceptLoop {
 public:
  using OnAccept = std::function<void(boost::asio::ip::tcp::socket, boost::asio::ip::tcp::endpoint client)>;
  // Whether one more connection of that client may be accepted; otherwise it is reset. If empty, all are
  // accepted.
  using HasRoom = std::function<bool(const boost::asio::ip::address& client)>;

  struct Counters {
    std::uint64_t accepted = 0;
    std::uint64_t refused = 0;  // no room
    std::uint64_t errors = 0;   // the process or the system ran out of a resource; retried after a pause
  };

  AcceptLoop(boost::asio::ip::tcp::acceptor acceptor, OnAccept on_accept, HasRoom has_room = {});
  ~AcceptLoop();  // closes the port at once
  AcceptLoop(const AcceptLoop&) = delete;
  AcceptLoop& operator=(const AcceptLoop&) = delete;

  boost::asio::ip::tcp::endpoint local_endpoint() const;
  Counters counters() const;

 private:
  struct State;
  static boost::asio::awaitable<void> run(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;  // shared with the coroutine, which ends after this object
};

}  // namespace longhaul::net
