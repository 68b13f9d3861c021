// SPDX-License-Identifier: Apache-2.0
// Tests that the status page is served, and attacks the API the way a hostile web page in the operator's
// browser would. How the page looks and works in a browser is tested in tests/e2e/page_test.py.
#include "proxy/control/page.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/beast/http/message.hpp>
#include <catch2/catch.hpp>

#include "proxy/control/http_client.h"

namespace longhaul::control {
namespace {

std::string raw_answer(RunningApi& api, const std::string& request) {
  HttpClient client{api.endpoint()};
  client.send(request);
  std::string text;
  boost::system::error_code error;
  boost::asio::read(client.socket(), boost::asio::dynamic_buffer(text), error);
  return text;
}

std::string request_of(const RunningApi& api, const std::string& line, const std::string& headers) {
  return line + " HTTP/1.1\r\nHost: 127.0.0.1:" + api.port() + "\r\nConnection: close\r\n" + headers + "\r\n";
}

TEST_CASE("the server serves the page and its two files, and no other file") {
  RunningApi api;
  api.start();
  CHECK(get(api, "/").content_type == "text/html; charset=utf-8");
  CHECK(get(api, "/page.js").content_type == "text/javascript; charset=utf-8");
  CHECK(get(api, "/page.css").content_type == "text/css; charset=utf-8");
  CHECK(get(api, "/").body.find("<!doctype html>") == 0);
  for (const auto* path : {"/page.html", "/page.js/", "/../page.js", "/%2e%2e/etc/passwd", "/index.html"})
    CHECK(get(api, path).status == 404);
  CHECK(get(api, "/?token=x").status == 400);  // where a log or a proxy would keep it
  CHECK(HttpClient{api.endpoint()}.ask(http::verb::head, "/").status == 200);
  CHECK(post(api, "/", "").status == 405);
}

// Inline scripts and styles would need a weaker policy, and other hosts are not asked for anything.
TEST_CASE("the page runs no inline script and loads nothing from elsewhere") {
  const auto text = std::string(find_page_file("/")->text);
  CHECK(text.find("<style") == std::string::npos);
  CHECK(text.find("style=") == std::string::npos);
  CHECK(text.find("javascript:") == std::string::npos);
  CHECK(text.find(" on") == text.find(" on the"));
  CHECK(text.find("://") == std::string::npos);
  for (auto at = text.find("<script"); at != std::string::npos; at = text.find("<script", at + 1))
    CHECK(text.compare(at, 12, "<script src=") == 0);
  const auto script = std::string(find_page_file("/page.js")->text);
  for (const auto* word : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                           "new Function", "localStorage"})
    CHECK(script.find(word) == std::string::npos);
}

TEST_CASE("every answer forbids inline scripts, frames and access from other origins") {
  RunningApi api;
  api.start();
  for (const auto* line : {"GET /", "GET /page.js", "GET /v1/status", "GET /nothing", "POST /v1/reload",
                           "OPTIONS /v1/features"}) {
    const auto answer =
        raw_answer(api, request_of(api, line, "Origin: http://127.0.0.1:" + api.port() + "\r\n"));
    CHECK(answer.find("Content-Security-Policy: default-src 'none'; script-src 'self';") !=
          std::string::npos);
    CHECK(answer.find("unsafe") == std::string::npos);
    CHECK(answer.find("frame-ancestors 'none'") != std::string::npos);
    CHECK(answer.find("X-Frame-Options: DENY") != std::string::npos);
    CHECK(answer.find("X-Content-Type-Options: nosniff") != std::string::npos);
    CHECK(answer.find("Cross-Origin-Resource-Policy: same-origin") != std::string::npos);
    CHECK(answer.find("Access-Control-") == std::string::npos);
  }
}

TEST_CASE("a page of another site can neither change nor read anything, even if it knew the token") {
  RunningApi api;
  api.start();
  const auto before = api.on_loop([&] { return api.daemon.in_force; });
  const auto origin = GENERATE(as<std::string>{}, "http://evil.example", "null", "http://127.0.0.1",
                               "https://127.0.0.1:1", "http://localhost.evil.example");
  const auto token = "Bearer " + kTestToken;
  // A refusal before the body was read ends the connection.
  const auto ask = [&](http::verb method, const std::string& target, const std::string& body,
                       const std::map<http::field, std::string>& headers) {
    return HttpClient{api.endpoint()}.ask(method, target, body, headers).status;
  };
  for (const auto& [method, target, body] :
       {std::tuple(http::verb::post, "/v1/features", R"({"compression": false})"),
        std::tuple(http::verb::post, "/v1/clear-cache", ""), std::tuple(http::verb::post, "/v1/reload", ""),
        std::tuple(http::verb::get, "/v1/flows", ""), std::tuple(http::verb::get, "/", "")}) {
    CHECK(ask(method, target, body, {{http::field::origin, origin}, {http::field::authorization, token}}) ==
          403);
    CHECK(ask(method, target, body, {{http::field::origin, origin}}) == 403);
  }
  // What a form of another site can send without asking first: no header of its own, and a simple content
  // type.
  for (const auto* type : {"text/plain", "application/x-www-form-urlencoded", "multipart/form-data"})
    CHECK(ask(http::verb::post, "/v1/features", R"({"compression": false})",
              {{http::field::content_type, type}}) == 401);
  CHECK(ask(http::verb::options, "/v1/features", "",
            {{http::field::access_control_request_method, "POST"}}) == 405);
  CHECK(api.on_loop([&] { return api.daemon.in_force; }) == before);
}

TEST_CASE("a request with a host name that an attacker points at this machine is refused") {
  RunningApi api;
  api.start();
  HttpClient client{api.endpoint()};
  for (const auto* path : {"/", "/page.js", "/v1/status"})
    for (const auto& host :
         {"evil.example:" + api.port(), std::string("evil.example"), std::string("127.0.0.1:1")})
      CHECK(client.ask(http::verb::get, path, "", {{http::field::host, host}}).status == 403);
}

TEST_CASE("another site may link to the page, but its scripts can fetch nothing") {
  RunningApi api;
  api.start();
  const auto answered = [&](const std::string& path, const std::string& site, const std::string& mode) {
    const auto answer = raw_answer(
        api,
        request_of(api, "GET " + path, "Sec-Fetch-Site: " + site + "\r\nSec-Fetch-Mode: " + mode + "\r\n"));
    return answer.starts_with("HTTP/1.1 200");
  };
  CHECK(answered("/", "cross-site", "navigate"));
  CHECK(answered("/", "none", "navigate"));
  CHECK(answered("/v1/status", "none", "navigate"));
  CHECK(answered("/v1/status", "same-origin", "cors"));
  CHECK(answered("/page.js", "same-origin", "no-cors"));
  CHECK_FALSE(answered("/page.js", "cross-site", "no-cors"));
  CHECK_FALSE(answered("/v1/status", "cross-site", "navigate"));
  CHECK_FALSE(answered("/v1/status", "same-site", "no-cors"));  // another port of this machine
}

}  // namespace
}  // namespace longhaul::control
