// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/source_memory.h"

#include <catch2/catch.hpp>

using namespace longhaul::flows;
using Known = SourceMemory::Known;

TEST_CASE("knowledge about a destination expires") {
  SourceMemory memory;
  const SourceMemory::TimePoint now{};
  const auto server = boost::asio::ip::make_address("10.2.0.1");
  CHECK(memory.about(server, now) == Known::nothing);
  memory.learn(server, Known::only_proxy_answered, now);
  CHECK(memory.about(server, now + SourceMemory::kRemembered - std::chrono::seconds(1)) ==
        Known::only_proxy_answered);
  CHECK(memory.about(server, now + SourceMemory::kRemembered) == Known::nothing);
}

TEST_CASE("the memory of destinations is bounded and drops the oldest") {
  SourceMemory memory;
  SourceMemory::TimePoint now{};
  const auto server = [](std::uint32_t n) { return boost::asio::ip::address_v4(0x0a000000u + n); };
  for (std::uint32_t n = 0; n <= SourceMemory::kDestinations; ++n)
    memory.learn(server(n), Known::client_answered, now += std::chrono::milliseconds(1));
  CHECK(memory.size() == SourceMemory::kDestinations);
  CHECK(memory.about(server(0), now) == Known::nothing);
  CHECK(memory.about(server(1), now) == Known::client_answered);
}
