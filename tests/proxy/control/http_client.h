// SPDX-License-Identifier: Apache-2.0
// A plain HTTP client for tests: well-behaved requests by Beast, and bytes as they are for the others.
#pragma once
#include <boost/asio/connect.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/json/parse.hpp>
#include <map>
#include <string>

#include "proxy/control/fake_daemon.h"

namespace longhaul::control {

namespace http = boost::beast::http;

struct Reply {
  unsigned status = 0;
  std::string body;
  std::string allow, content_type;
  bool keep_alive = false;
  boost::json::object json() const { return boost::json::parse(body).as_object(); }
  std::string error() const { return std::string(json().at("error").as_string()); }
};

class HttpClient {
 public:
  explicit HttpClient(const boost::asio::ip::tcp::endpoint& to) : port_(std::to_string(to.port())) {
    socket_.connect(to);
  }

  Reply ask(http::verb method, const std::string& target, const std::string& body = {},
            std::map<http::field, std::string> headers = {}) {
    http::request<http::string_body> request{method, target, 11};
    request.set(http::field::host, "127.0.0.1:" + port_);
    for (const auto& [name, value] : headers) request.set(name, value);
    request.body() = body;
    request.prepare_payload();
    http::write(socket_, request);
    return read(method == http::verb::head);
  }
  Reply get(const std::string& target) { return ask(http::verb::get, target); }
  Reply post(const std::string& target, const std::string& body) {
    return ask(http::verb::post, target, body, {{http::field::authorization, "Bearer " + kTestToken}});
  }

  void send(std::string_view bytes) { boost::asio::write(socket_, boost::asio::buffer(bytes)); }
  Reply read(bool without_body = false) {
    http::response_parser<http::string_body> parser;
    parser.body_limit(8u << 20);
    parser.skip(without_body);
    http::read(socket_, buffer_, parser);
    const auto& response = parser.get();
    return {response.result_int(), response.body(), response[http::field::allow],
            response[http::field::content_type], response.keep_alive()};
  }
  // Waits for the far end; true if it ended the connection in order, without another byte.
  bool ends_cleanly() {
    char byte = 0;
    boost::system::error_code error;
    boost::asio::read(socket_, boost::asio::buffer(&byte, 1), error);
    return error == boost::asio::error::eof;
  }
  boost::asio::ip::tcp::socket& socket() { return socket_; }

 private:
  boost::asio::io_context loop_;
  boost::asio::ip::tcp::socket socket_{loop_};
  boost::beast::flat_buffer buffer_;
  std::string port_;
};

inline Reply get(const RunningApi& api, const std::string& target) {
  return HttpClient{api.endpoint()}.get(target);
}
inline Reply post(const RunningApi& api, const std::string& target, const std::string& body) {
  return HttpClient{api.endpoint()}.post(target, body);
}

}  // namespace longhaul::control
