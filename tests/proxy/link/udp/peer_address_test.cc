// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/peer_address.h"

#include <boost/asio/ip/udp.hpp>
#include <catch2/catch.hpp>

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;
using Age = PeerAddress::Age;

namespace {

constexpr TimePoint kNow{1h};

UdpAddress at(const char* address, std::uint16_t port = 7000) {
  return {boost::asio::ip::make_address(address), port};
}

PathToken token_in(const Buffer& frame) {
  PathToken token;
  std::copy(frame.end() - static_cast<std::ptrdiff_t>(token.size()), frame.end(), token.begin());
  return token;
}

}  // namespace

TEST_CASE("an unknown peer is where its first packet comes from") {
  PeerAddress address{UdpAddress()};
  CHECK_FALSE(address.known());
  CHECK(address.note(at("10.0.0.1"), Age::older, kNow));
  CHECK(address.known());
  CHECK(address.current() == at("10.0.0.1"));
  CHECK_FALSE(address.note(at("10.0.0.1"), Age::newest, kNow));
  CHECK_FALSE(address.frame_due());
}

TEST_CASE("a peer that moved is followed once it has answered a challenge at the new address") {
  PeerAddress address(at("10.0.0.1"));
  CHECK_FALSE(address.note(at("10.0.0.2"), Age::older, kNow));
  CHECK_FALSE(address.frame_due());
  CHECK_FALSE(address.note(at("10.0.0.2"), Age::newest, kNow));
  REQUIRE(address.frame_due());
  Buffer frame;
  CHECK(address.write_frame(frame) == at("10.0.0.2"));
  CHECK_FALSE(address.frame_due());
  CHECK(address.current() == at("10.0.0.1"));
  // Repeated with the same token, and not more often than needed.
  address.note(at("10.0.0.2"), Age::newest, kNow + 100ms);
  CHECK_FALSE(address.frame_due());
  address.note(at("10.0.0.2"), Age::newest, kNow + 200ms);
  REQUIRE(address.frame_due());
  Buffer repeated;
  address.write_frame(repeated);
  CHECK(repeated == frame);
  PathToken wrong = token_in(frame);
  wrong[0] = static_cast<std::byte>(~static_cast<unsigned>(wrong[0]));
  CHECK_FALSE(address.on_response(wrong));
  CHECK(address.on_response(token_in(frame)));
  CHECK(address.current() == at("10.0.0.2"));
  CHECK_FALSE(address.on_response(token_in(frame)));
}

TEST_CASE("a challenge is answered at the address that it came from, before this side's own") {
  PeerAddress address(at("10.0.0.1"));
  address.note(at("10.0.0.3"), Age::newest, kNow);
  PathToken token{};
  token[0] = std::byte{7};
  address.on_challenge(token, at("10.0.0.2"));
  Buffer frame;
  CHECK(address.write_frame(frame) == at("10.0.0.2"));
  CHECK(token_in(frame) == token);
  frame.clear();
  CHECK(address.write_frame(frame) == at("10.0.0.3"));
  CHECK_FALSE(address.frame_due());
}
