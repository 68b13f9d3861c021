// SPDX-License-Identifier: Apache-2.0
// A plain HTTP client for tests: well-behaved requests by Beast, and bytes as they are for the others.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/verb.hpp>
#include <boost/json/object.hpp>
#include <map>
#include <string>
#include <string_view>

#include "proxy/control/fake_daemon.h"

namespace longhaul::control {

namespace http = boost::beast::http;

struct Reply {
  unsigned status = 0;
  std::string body;
  std::string allow, content_type;
  bool keep_alive = false;
  boost::json::object json() const;
  std::string error() const;
};

class HttpClient {
 public:
  explicit HttpClient(const boost::asio::ip::tcp::endpoint& to);

  Reply ask(http::verb method, const std::string& target, const std::string& body = {},
            const std::map<http::field, std::string>& headers = {});
  Reply get(const std::string& target);
  Reply post(const std::string& target, const std::string& body);

  void send(std::string_view bytes);
  Reply read(bool without_body = false);
  // Waits for the far end; true if it ended the connection in order, without another byte.
  bool ends_cleanly();
  boost::asio::ip::tcp::socket& socket() { return socket_; }

 private:
  boost::asio::io_context loop_;
  boost::asio::ip::tcp::socket socket_{loop_};
  boost::beast::flat_buffer buffer_;
  std::string port_;
};

Reply get(const RunningApi& api, const std::string& target);
Reply post(const RunningApi& api, const std::string& target, const std::string& body);

}  // namespace longhaul::control
