// SPDX-License-Identifier: Apache-2.0
// The meaning of each request: admission, routes, and the answers. server.h has sockets, time limits and the
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
  std::string host;           // header; empty: it was missing
  std::string authorization;  // header
  // Headers in which browsers say which page sent the request, and how; empty: none.
  std::string origin, fetch_site, fetch_mode;
  std::string body;
  boost::asio::ip::tcp::endpoint local, remote;
  bool tls = false;  // from the listener for other machines
};

class Api {
 public:
  Api(Controlled& daemon, std::string token);

  // Decided on the headers alone, before the body is read. No result: the request may be answered.
  std::optional<Answer> refuse(const Request& request) const;
  // Long answers are built in slices, between which the loop runs. The request lives until this completes.
  boost::asio::awaitable<Answer> answer(const Request& request, const ApiCounters& counters);

 private:
  Controlled& daemon_;
  std::string token_;
};

}  // namespace longhaul::control
