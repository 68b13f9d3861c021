// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/connect_ahead.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

using namespace longhaul;
using namespace longhaul::tls;

namespace {

bool repeats(std::string_view said) { return is_handshake(std::as_bytes(std::span(said))); }
bool answers(std::string_view said) { return is_no_alert(std::as_bytes(std::span(said))); }

std::string record(char type, std::size_t size) {
  return std::string{type, 3, 1, static_cast<char>(size >> 8), static_cast<char>(size & 0xff)} +
         std::string(size, 'x');
}

}  // namespace

TEST_CASE("tls connect ahead: a ClientHello may be sent again, however many records it has") {
  const std::string said = record(22, 700) + record(22, 3);
  for (std::size_t size = 0; size <= said.size(); ++size) CHECK(repeats(said.substr(0, size)));
}

TEST_CASE("tls connect ahead: early data and whatever is no TLS are not sent twice") {
  CHECK_FALSE(repeats(record(22, 700) + record(23, 10)));
  CHECK_FALSE(repeats(record(22, 700) + record(20, 1) + record(23, 10)));
  CHECK_FALSE(repeats("GET / HTTP/1.1\r\n"));
  CHECK_FALSE(repeats(std::string{22, 2, 1}));
}

TEST_CASE("tls connect ahead: an alert may be about the time before the client, and is no answer") {
  CHECK(answers(record(22, 90)));
  CHECK(answers("HTTP/1.1 400 Bad Request\r\n"));
  CHECK_FALSE(answers(record(21, 2)));
  CHECK_FALSE(answers(""));
}
