// SPDX-License-Identifier: Apache-2.0
// Tests for which clients promises are in doubt while a peer may have ended.
#include "proxy/flows/doubt.h"

#include "two_sites.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::testing;

namespace {

modules::Ends doubted_ends(std::uint8_t client, std::uint16_t port) {
  modules::Ends ends{.server_port = port};
  ends.client[15] = std::byte{client};
  return ends;
}

}  // namespace

TEST_CASE("a client is in doubt at all ports of a server while its peer is") {
  asio::io_context io;
  TwoSites sites(io);
  const link::PeerLink &link = *sites.far->links[0], &other = *sites.near->links[0];
  const link::PeerLink* doubted = nullptr;
  Doubt doubt([&](const link::PeerLink& each) { return &each == doubted; });
  doubt.add(doubted_ends(1, 445), link);
  doubt.add(doubted_ends(2, 445), other);
  CHECK_FALSE(doubt.about(doubted_ends(1, 445)));
  CHECK(doubt.all(10).empty());
  doubted = &link;
  CHECK(doubt.about(doubted_ends(1, 445)));
  CHECK(doubt.about(doubted_ends(1, 139)));
  CHECK_FALSE(doubt.about(doubted_ends(2, 445)));
  CHECK(doubt.all(10) == std::vector{doubted_ends(1, 0)});
}

TEST_CASE("a client stays in doubt until the last of its flows is removed") {
  asio::io_context io;
  TwoSites sites(io);
  const link::PeerLink& link = *sites.far->links[0];
  Doubt doubt([](const link::PeerLink&) { return true; });
  doubt.add(doubted_ends(1, 445), link);
  doubt.add(doubted_ends(1, 139), link);
  doubt.add(doubted_ends(2, 445), link);
  CHECK(doubt.all(1).size() == 1);
  doubt.remove(doubted_ends(1, 445), link);
  CHECK(doubt.about(doubted_ends(1, 445)));
  doubt.remove(doubted_ends(1, 139), link);
  CHECK_FALSE(doubt.about(doubted_ends(1, 445)));
  CHECK(doubt.all(10) == std::vector{doubted_ends(2, 0)});
}
