// SPDX-License-Identifier: Apache-2.0
// Tests how long a destination counts as unreachable, and that a scan of ports cannot fill the memory.
#include "proxy/flows/unreachable_servers.h"

#include <catch2/catch.hpp>

using namespace longhaul;
using namespace longhaul::flows;
using namespace std::chrono_literals;

namespace {

link::Destination unreachable_at(std::uint16_t port) {
  return {.address = boost::asio::ip::make_address("192.0.2.1"), .port = port};
}

constexpr UnreachableServers::Clock::time_point kStart{1h};

}  // namespace

TEST_CASE("an unreachable server is remembered with its reason for ten seconds") {
  UnreachableServers servers;
  servers.remember(unreachable_at(80), flows::reasons::peer_refused, kStart);
  CHECK(servers.reason_for(unreachable_at(80), kStart + 9'999ms) == flows::reasons::peer_refused);
  CHECK_FALSE(servers.reason_for(unreachable_at(80), kStart + 10s));
  CHECK_FALSE(servers.reason_for(unreachable_at(81), kStart));
  CHECK_FALSE(servers.reason_for({.host = "192.0.2.1.example", .port = 80}, kStart));
}

TEST_CASE("the last reason of an unreachable server counts") {
  UnreachableServers servers;
  servers.remember(unreachable_at(80), flows::reasons::peer_refused, kStart);
  servers.remember(unreachable_at(80), flows::reasons::destination_refused, kStart + 5s);
  CHECK(servers.reason_for(unreachable_at(80), kStart + 14s) == flows::reasons::destination_refused);
}

TEST_CASE("no more unreachable servers are remembered than there is room for, until some have expired") {
  UnreachableServers servers;
  std::uint16_t port = 1;
  for (std::size_t i = 0; i < UnreachableServers::kMost; ++i)
    servers.remember(unreachable_at(port++), flows::reasons::destination_refused, kStart);
  servers.remember(unreachable_at(port), flows::reasons::destination_refused, kStart + 5s);
  CHECK_FALSE(servers.reason_for(unreachable_at(port), kStart + 5s));
  CHECK(servers.reason_for(unreachable_at(1), kStart + 5s));
  servers.remember(unreachable_at(port), flows::reasons::destination_refused, kStart + 10s);
  CHECK(servers.reason_for(unreachable_at(port), kStart + 10s) == flows::reasons::destination_refused);
}
