// SPDX-License-Identifier: Apache-2.0
#include "proxy/listeners/socks5_records.h"

#include <catch2/catch.hpp>

using namespace longhaul;
using namespace longhaul::listeners::socks5;
using namespace std::string_literals;

namespace {

Request request(const std::string& bytes) {
  const auto parsed = parse_request(as_bytes(bytes));
  REQUIRE(parsed.has_value());
  REQUIRE(parsed->has_value());
  CHECK((*parsed)->consumed == bytes.size());
  return (*parsed)->value;
}

boost::system::error_code error(const std::string& bytes) {
  const auto parsed = parse_request(as_bytes(bytes));
  return parsed ? boost::system::error_code() : parsed.error();
}

}  // namespace

TEST_CASE("a SOCKS5 request names an IPv4 address, an IPv6 address or a host") {
  CHECK(request("\x05\x01\x00\x01\x0a\x02\x00\x01\x01\xbd"s).destination.to_text() == "10.2.0.1:445");
  CHECK(
      request("\x05\x01\x00\x04\xfd\x00"s + std::string(13, '\0') + "\x09\x00\x50"s).destination.to_text() ==
      "[fd00::9]:80");
  CHECK(request("\x05\x01\x00\x03\x0d"
                "files.example\x01\xbd"s)
            .destination.to_text() == "files.example:445");
}

TEST_CASE("an address written as a name is read as an address") {
  CHECK(request("\x05\x01\x00\x03\x08"
                "10.2.0.1\x00\x50"s)
            .destination.host.empty());
  CHECK(request("\x05\x01\x00\x03\x03::1\x00\x50"s).destination.address.is_loopback());
  CHECK(request("\x05\x01\x00\x03\x0f::ffff:10.2.0.1\x00\x50"s).destination.to_text() == "10.2.0.1:80");
}

TEST_CASE("commands other than CONNECT are read too, so that they can be refused by name") {
  CHECK(request("\x05\x02\x00\x01\x0a\x02\x00\x01\x01\xbd"s).command ==
        static_cast<std::uint8_t>(Command::bind));
  CHECK(request("\x05\x07\x00\x01\x0a\x02\x00\x01\x01\xbd"s).command == 7);
}

TEST_CASE("an invalid request is an error at the first byte that makes it invalid") {
  CHECK(error("\x04"s) == Error::not_socks5);
  CHECK(error("GET"s) == Error::not_socks5);
  CHECK(error("\x05\x01\x07"s) == Error::bad_request);
  CHECK(error("\x05\x01\x00\x09"s) == Error::bad_address_type);
  CHECK(error("\x05\x01\x00\x03\x00\x00\x50"s) == Error::bad_request);
  CHECK(error("\x05\x01\x00\x03\x03"
              "a\nb\x00\x50"s) == Error::bad_request);
  CHECK(error("\x05\x01\x00\x03\x03"
              "a\0b\x00\x50"s) == Error::bad_request);
  CHECK_FALSE(parse_greeting(as_bytes("\x04\x01")).has_value());
}

TEST_CASE("a record read byte by byte never asks for bytes beyond its end") {
  const std::string whole = GENERATE("\x05\x01\x00\x01\x0a\x02\x00\x01\x01\xbd"s,
                                     "\x05\x01\x00\x03\x0d"
                                     "files.example\x01\xbd"s,
                                     "\x05\x01\x00\x04"s + std::string(15, '\0') + "\x01\x00\x50"s);
  for (std::size_t have = 0; have < whole.size(); ++have) {
    const Bytes part = as_bytes(whole).first(have);
    const auto parsed = parse_request(part);
    REQUIRE(parsed.has_value());
    CHECK_FALSE(parsed->has_value());
    CHECK(request_bytes(part) > have);
    CHECK(request_bytes(part) <= whole.size());
  }
  const std::string more = whole + "the flow's own bytes";
  CHECK((*parse_request(as_bytes(more)))->consumed == whole.size());
}

TEST_CASE("a greeting shows whether the client accepts no authentication") {
  const auto offers = [](const std::string& bytes) {
    return (*parse_greeting(as_bytes(bytes)))->value.offers_no_authentication;
  };
  CHECK(offers("\x05\x01\x00"s));
  CHECK(offers("\x05\x03\x02\x01\x00"s));
  CHECK_FALSE(offers("\x05\x01\x02"s));
  CHECK_FALSE(offers("\x05\x00"s));
  CHECK_FALSE(parse_greeting(as_bytes("\x05\x02\x00"s))->has_value());
}

TEST_CASE("every outcome has a reply code") {
  using flows::ConnectOutcome;
  const auto code = [](ConnectOutcome outcome) {
    return static_cast<int>(reply_text(reply_for(outcome))[1]);
  };
  CHECK(code(ConnectOutcome::connected) == 0);
  CHECK(code(ConnectOutcome::failed) == 1);
  CHECK(code(ConnectOutcome::not_allowed) == 2);
  CHECK(code(ConnectOutcome::network_unreachable) == 3);
  CHECK(code(ConnectOutcome::host_unreachable) == 4);
  CHECK(code(ConnectOutcome::name_not_found) == 4);
  CHECK(code(ConnectOutcome::refused) == 5);
  CHECK(code(ConnectOutcome::timed_out) == 6);
  CHECK(reply_text(Reply::refused) == "\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00"s);
}
