// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/connect_ahead.h"

#include <catch2/catch.hpp>
#include <string>

using namespace longhaul;
using namespace longhaul::http;

namespace {

Bytes bytes_of_text(std::string_view text) { return std::as_bytes(std::span(text)); }
bool repeats(std::string_view said) { return may_be_repeated(bytes_of_text(said)); }

const std::string kGet = "GET /a HTTP/1.1\r\nHost: a\r\nCookie: me=1\r\n\r\n";

}  // namespace

TEST_CASE("http connect ahead: requests that only ask may be sent again, however much of them has arrived") {
  const std::string said = kGet + "HEAD /b HTTP/1.0\r\n\r\n" + kGet;
  for (std::size_t size = 0; size <= said.size(); ++size) CHECK(repeats(said.substr(0, size)));
}

TEST_CASE("http connect ahead: what changes something, or may be read in two ways, is not sent twice") {
  for (const char* other :
       {"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "POS", "DELETE /a HTTP/1.1\r\n",
        "OPTIONS * HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GETX", "get / HTTP/1.1\r\n", "\r\n"}) {
    INFO(other);
    CHECK_FALSE(repeats(other));
    CHECK_FALSE(repeats(kGet + other));
  }
  for (const char* field : {"Content-Length: 3", "Transfer-Encoding: chunked", "Upgrade: websocket",
                            "Expect: 100-continue", "Authorization: Negotiate YII=",
                            "Authorization: NTLM TlRM", "Content-Length: 1\r\nContent-Length: 2"}) {
    INFO(field);
    CHECK_FALSE(repeats("GET /a HTTP/1.1\r\nHost: a\r\n" + std::string(field) + "\r\n\r\n"));
  }
  CHECK(repeats("GET /a HTTP/1.1\r\nHost: a\r\nAuthorization: Basic bWU=\r\n\r\n"));
}

TEST_CASE("http connect ahead: a server that has waited too long has not answered") {
  CHECK(is_response(bytes_of_text("HTTP/1.1 200 OK\r\n")));
  CHECK(is_response(bytes_of_text("HTTP/1.0 404")));
  for (const char* other : {"", "HTTP/1.1 40", "HTTP/1.1 408 Request Timeout\r\n", "HTTP/1.0 408 x",
                            "220 mail.example ESMTP\r\n"})
    CHECK_FALSE(is_response(bytes_of_text(other)));
}
