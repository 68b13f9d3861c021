// SPDX-License-Identifier: Apache-2.0
// The share of [limits] flows that one peer leaves to the others.
#include "proxy/flows/peer_shares.h"

#include <catch2/catch.hpp>

using longhaul::flows::PeerShares;

namespace {

std::uint32_t fill(PeerShares& shares, const std::string& sharer, std::uint32_t most, std::size_t sharers) {
  std::uint32_t flows = 0;
  for (; shares.has_room(sharer, most, sharers); ++flows) shares.add(sharer);
  return flows;
}

}  // namespace

TEST_CASE("one peer may use all free flows except the share of each other peer") {
  PeerShares shares;
  CHECK(fill(shares, "a", 800, 4) == 500);
  CHECK(fill(shares, "b", 800, 4) == 100);
  CHECK(fill(shares, "c", 800, 4) == 100);
  CHECK(fill(shares, "", 800, 4) == 100);
  CHECK_FALSE(shares.has_room("a", 800, 4));
  shares.remove("a");
  CHECK(shares.has_room("a", 800, 4));
}

TEST_CASE("a single peer may use all flows") {
  PeerShares shares;
  CHECK(fill(shares, "a", 10, 1) == 10);
  CHECK_FALSE(shares.has_room("b", 10, 1));  // of a peer that is not configured any more
}

TEST_CASE("a peer keeps its share even if this site's clients use more than theirs") {
  PeerShares shares;
  for (int i = 0; i < 90; ++i) shares.add("");
  CHECK(fill(shares, "a", 100, 2) == 10);
}

TEST_CASE("if there are fewer flows than peers, none is reserved") {
  PeerShares shares;
  CHECK(fill(shares, "a", 3, 10) == 3);
}
