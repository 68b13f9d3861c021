// SPDX-License-Identifier: Apache-2.0
// A TLS connection between two proxies until the session takes it over: the handshake and single frames, each
// within a time limit.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>

#include "proxy/link/frames.h"
#include "proxy/link/io/handshake_turns.h"
#include "proxy/link/io/tls_engine.h"

namespace longhaul::link {

// How the steps of an incoming handshake wait for their turns. Borrowed until the handshake ends.
struct HandshakePace {
  HandshakeTurns& turns;
  Standing standing;
  std::function<void(Duration processor)> charge;  // receives the processor time of each step
};

class TlsConnection {
 public:
  TlsConnection(boost::asio::ip::tcp::socket socket, const TlsContext& context, Side side,
                TlsEngine::FindKey find);

  // Each completes with an error when `limit` has passed. Without a pace, the handshake does not wait for
  // turns.
  boost::asio::awaitable<Result<void>> handshake(Duration limit, const HandshakePace* pace = nullptr);
  boost::asio::awaitable<Result<Frame>> read_frame(Duration limit);
  boost::asio::awaitable<Result<void>> write_frame(const Frame frame);

  // Sends the reason and closes; never waits.
  void refuse(CloseCode code, std::string text);
  // Closes so that the last data, such as an alert, still arrives; never waits.
  void end();
  // Closes at once: every operation on this connection completes with an error.
  void cut();

  boost::asio::ip::tcp::socket& socket() { return socket_; }
  TlsEngine& tls() { return *tls_; }
  Buffer& plain() { return plain_; }  // decrypted and not yet read
  const std::string& remote() const { return remote_; }
  Duration handshake_time() const { return handshake_time_; }  // about one round trip

 private:
  boost::asio::awaitable<Result<void>> receive_some(const HandshakePace* pace = nullptr);
  boost::asio::awaitable<Result<void>> flush();

  boost::asio::ip::tcp::socket socket_;
  std::unique_ptr<TlsEngine> tls_;
  Buffer plain_;
  std::string remote_;
  Side side_;
  Duration handshake_time_{};
};

}  // namespace longhaul::link
