// SPDX-License-Identifier: Apache-2.0
// Handles each request: admission, routes, and responses. server.h handles sockets, time limits and the
// number of connections.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/beast/http/verb.hpp>
#include <optional>
#include <string>

#include "proxy/control/answers.h"
#include "proxy/control/controlled.h"
#include "proxy/control/metrics.h"

namespace longhaul::control {

struct Request {
  boost::beast::http::verb method = boost::beast::http::verb::get;
  std::string target;         // path and query as sent
  std::string host;           // header; empty if it was missing
  std::string authorization;  // header
  // Headers with which browsers report the page that sent the request, and the kind of request; empty if
  // missing.
  std::string origin, fetch_site, fetch_mode;
  std::string body;
  boost::asio::ip::tcp::endpoint local, remote;
  bool tls = false;  // received by the listener for other machines
};

class Api {
 public:
  Api(Controlled& daemon, std::string token);

  // Checks the headers, before the body is read. Returns nullopt if the request may be answered.
  std::optional<Answer> refuse(const Request& request) const;
  // Long responses are built in slices, between which the event loop runs. The request must live until this
  // completes.
  boost::asio::awaitable<Answer> answer(const Request& request, const ApiCounters& counters);

 private:
  Controlled& daemon_;
  std::string token_;
};

}  // namespace longhaul::control
