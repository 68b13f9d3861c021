// SPDX-License-Identifier: Apache-2.0
// A TCP connection between two proxies with TLS on it, up to the point where the session takes over: the
// handshake and single frames, each within a time limit.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>

#include "proxy/link/frames.h"
#include "proxy/link/tls_engine.h"

namespace longhaul::link {

class TlsConnection {
 public:
  TlsConnection(boost::asio::ip::tcp::socket socket, const TlsContext& context, Side side);

  // Both complete with an error when `limit` has passed.
  boost::asio::awaitable<Result<void>> handshake(Duration limit);
  boost::asio::awaitable<Result<Frame>> read_frame(Duration limit);
  boost::asio::awaitable<Result<void>> write_frame(const Frame frame);

  // Says why and closes; never waits.
  void refuse(CloseCode code, std::string text);

  boost::asio::ip::tcp::socket& socket() { return socket_; }
  TlsEngine& tls() { return *tls_; }
  Buffer& plain() { return plain_; }  // decrypted and not yet read
  const std::string& remote() const { return remote_; }
  Duration handshake_time() const { return handshake_time_; }  // about one round trip

 private:
  boost::asio::awaitable<Result<void>> receive_some();
  boost::asio::awaitable<Result<void>> flush();

  boost::asio::ip::tcp::socket socket_;
  std::unique_ptr<TlsEngine> tls_;
  Buffer plain_;
  std::string remote_;
  Side side_;
  Duration handshake_time_{};
};

}  // namespace longhaul::link
