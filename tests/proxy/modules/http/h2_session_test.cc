// SPDX-License-Identifier: Apache-2.0
// What a server must refuse of a client's frames and the library does not (RFC 9113), and what it must still tolerate.
#include <catch2/catch.hpp>

#include "proxy/modules/http/h2/early.h"
#include "tests/proxy/modules/http/h2_peers.h"

namespace longhaul::http::h2 {
namespace {

enum : std::uint8_t { kData, kHeaders, kPriority, kReset, kSettings, kGoaway = 7 };
enum : std::uint8_t { kNoFlag, kEndStream, kEndHeaders = 4, kWhole };

std::string raw(std::uint8_t type, std::uint8_t flags, std::uint8_t stream, const std::string& content) {
  return std::string(2, '\0') + static_cast<char>(content.size()) + static_cast<char>(type) + static_cast<char>(flags) +
         std::string(3, '\0') + static_cast<char>(stream) + content;
}

struct Unspoken : Peer {
  Unspoken() : Peer(Session::Role::server) { session.announce({{3, 100}, {9, 1}}, 0); }
  // The error with which the connection ends. Nothing: it goes on.
  std::optional<std::uint32_t> says(std::string frames) {
    REQUIRE(take(frames));
    const std::string said = out();
    for (std::size_t at = 0; at + 9 <= said.size();) {
      const auto byte = [&](std::size_t offset) { return static_cast<std::uint8_t>(said[at + offset]); };
      if (byte(3) == kGoaway) return byte(16);
      at += 9u + byte(0) * 65'536u + byte(1) * 256u + byte(2);
    }
    return std::nullopt;
  }
};

struct Server : Unspoken {
  Server() { says(std::string(kPreface) + raw(kSettings, kNoFlag, 0, "")); }
  auto asks(std::uint8_t stream, std::uint8_t flags = kWhole) { return says(raw(kHeaders, flags, stream, std::string("\x82\x86\x84\x41\x01x", 6))); }
  void answers(StreamId stream) {
    session.respond(stream, response("200"), nullptr);
    REQUIRE_FALSE(says(""));
  }
};

TEST_CASE(
    "http/2 session: HEADERS on a stream that both have ended or the client has reset end the connection") {
  for (const bool is_reset : {false, true}) {
    Server server;
    REQUIRE_FALSE(server.asks(1));
    is_reset ? (void)server.says(raw(kReset, kNoFlag, 1, std::string("\0\0\0\x8", 4))) : server.answers(1);
    REQUIRE(server.messages[1].closed);
    CHECK(server.asks(1) == errors::closed);
  }
}

TEST_CASE("http/2 session: anything but the preface ends the connection") {
  Unspoken server;
  CHECK(server.says(std::string(kPreface.substr(0, 20)) + "GET / HTTP/1.1\r\n\r\n") == errors::protocol);
  CHECK(server.session.is_over());
  CHECK_FALSE(server.says("more"));
}

TEST_CASE("http/2 session: a stream whose number was passed over cannot be opened any more") {
  Server server;
  REQUIRE_FALSE(server.asks(5));
  CHECK(server.asks(3) == errors::protocol);
}

TEST_CASE("http/2 session: what was in transit when this side reset the stream is ignored") {
  Server server;
  REQUIRE_FALSE(server.asks(1, kEndHeaders));
  server.session.reset(1, errors::cancel);
  REQUIRE_FALSE(server.says(raw(kData, kNoFlag, 1, "late")));
  CHECK(server.messages[1].closed);
  CHECK_FALSE(server.says(raw(kData, kNoFlag, 1, "late")));
  CHECK_FALSE(server.asks(1));  // trailers
  // Also on one that was refused and never open.
  Server full;
  full.session.announce({{3, 1}}, 0);
  REQUIRE_FALSE(full.asks(1, kEndHeaders));
  REQUIRE_FALSE(full.asks(3, kEndHeaders));
  REQUIRE(full.messages.size() == 1);
  CHECK_FALSE(full.asks(3));
}

TEST_CASE("http/2 session: PRIORITY is ignored on streams, and ends the connection on none") {
  Server server;
  REQUIRE_FALSE(server.says(raw(kPriority, kNoFlag, 1, std::string("\0\0\0\1\x10", 5))));
  CHECK(server.says(raw(kPriority, kNoFlag, 0, std::string("\0\0\0\1\x10", 5))) == errors::protocol);
}

TEST_CASE("http/2 session: what is known of streams that are over is bounded") {
  StreamHistory history;
  for (StreamHistory::Stream stream = 1; stream < 100'000; stream += 4) {
    REQUIRE_FALSE(history.on_headers(stream));
    history.on_ended(stream);
  }
  CHECK(history.on_headers(99'997) == StreamHistory::Fault::ended);
  CHECK(history.on_headers(99'995) == StreamHistory::Fault::never_used);
  CHECK_FALSE(history.on_headers(1));
  CHECK_FALSE(history.on_headers(3));
  CHECK_FALSE(history.on_headers(0x7FFFFFFF));
}

}  // namespace
}  // namespace longhaul::http::h2
