// SPDX-License-Identifier: Apache-2.0
// Apart from its header since Beast takes several seconds to compile wherever it is used.
#include "proxy/control/http_client.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http.hpp>
#include <boost/json/parse.hpp>

namespace longhaul::control {

boost::json::object Reply::json() const { return boost::json::parse(body).as_object(); }

std::string Reply::error() const { return std::string(json().at("error").as_string()); }

HttpClient::HttpClient(const boost::asio::ip::tcp::endpoint& to) : port_(std::to_string(to.port())) {
  socket_.connect(to);
}

Reply HttpClient::ask(http::verb method, const std::string& target, const std::string& body,
                      const std::map<http::field, std::string>& headers) {
  http::request<http::string_body> request{method, target, 11};
  request.set(http::field::host, "127.0.0.1:" + port_);
  for (const auto& [name, value] : headers) request.set(name, value);
  request.body() = body;
  request.prepare_payload();
  http::write(socket_, request);
  return read(method == http::verb::head);
}

Reply HttpClient::get(const std::string& target) { return ask(http::verb::get, target); }

Reply HttpClient::post(const std::string& target, const std::string& body) {
  return ask(http::verb::post, target, body, {{http::field::authorization, "Bearer " + kTestToken}});
}

void HttpClient::send(std::string_view bytes) { boost::asio::write(socket_, boost::asio::buffer(bytes)); }

Reply HttpClient::read(bool without_body) {
  http::response_parser<http::string_body> parser;
  parser.body_limit(8u << 20);
  parser.skip(without_body);
  http::read(socket_, buffer_, parser);
  const auto& response = parser.get();
  return {response.result_int(), response.body(), response[http::field::allow],
          response[http::field::content_type], response.keep_alive()};
}

bool HttpClient::ends_cleanly() {
  char byte = 0;
  boost::system::error_code error;
  boost::asio::read(socket_, boost::asio::buffer(&byte, 1), error);
  return error == boost::asio::error::eof;
}

Reply get(const RunningApi& api, const std::string& target) { return HttpClient{api.endpoint()}.get(target); }
Reply post(const RunningApi& api, const std::string& target, const std::string& body) {
  return HttpClient{api.endpoint()}.post(target, body);
}

}  // namespace longhaul::control
