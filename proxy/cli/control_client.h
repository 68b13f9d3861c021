// SPDX-License-Identifier: Apache-2.0
// One connection to a running daemon's control API, for commands that wait for the response. Errors are
// sentences for the user.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/verb.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <filesystem>
#include <string>

#include "proxy/config/config.h"
#include "proxy/config/host_port.h"
#include "proxy/config/text_error.h"

namespace longhaul::cli {

struct Daemon {
  config::HostPort address{"127.0.0.1", 7601};
  std::filesystem::path token_file = "/var/lib/longhaul/control.token";
  std::chrono::milliseconds patience{10'000};  // time limit for connecting, and for each response
};

// Where to find the daemon that runs with this configuration on this host.
Daemon daemon_of(const config::Config& config);

class ControlClient {
 public:
  explicit ControlClient(Daemon daemon);

  // Connects at the first request. A daemon on another machine needs the token for reads too.
  config::TextResult<boost::json::value> get(const std::string& target);
  // For responses other than JSON, such as the metrics.
  config::TextResult<std::string> get_text(const std::string& target);
  config::TextResult<boost::json::value> post(const std::string& target, const boost::json::value& body);

  // The token, for requests by a browser.
  config::TextResult<std::string> secret() const { return token(boost::beast::http::verb::post); }

 private:
  struct Reply {
    unsigned status = 0;
    std::string body;
  };
  config::TextResult<Reply> fetch(boost::beast::http::verb method, const std::string& target,
                                  const std::string& body, const std::string& secret);
  config::TextResult<boost::json::value> ask(boost::beast::http::verb method, const std::string& target,
                                             const std::string& body);
  config::TextResult<std::string> token(boost::beast::http::verb method) const;
  boost::asio::awaitable<boost::system::error_code> connect();
  boost::asio::awaitable<boost::system::error_code> exchange(boost::beast::http::verb method,
                                                             std::string target, std::string body,
                                                             std::string token, Reply& reply);
  boost::system::error_code run(boost::asio::awaitable<boost::system::error_code> work);
  std::string trouble(const boost::system::error_code& error) const;

  Daemon daemon_;
  boost::asio::io_context loop_{1};
  boost::beast::tcp_stream stream_{loop_};
  boost::beast::flat_buffer buffer_;
  bool connected_ = false;
};

}  // namespace longhaul::cli
