// SPDX-License-Identifier: Apache-2.0
#include "proxy/config/sharing.h"

#include <catch2/catch.hpp>

namespace longhaul::config {
namespace {

Peer peer(std::string name, std::vector<std::string> groups) {
  Peer made;
  made.name = std::move(name);
  made.groups = std::move(groups);
  return made;
}

TEST_CASE("peers share the dictionary if this side names a group that contains both") {
  Config config;
  config.peers = {peer("a", {"labs", "north"}), peer("b", {"labs"}), peer("c", {"north"}), peer("d", {})};
  const auto shared = [&](int one, int other) {
    const bool way = share_dictionary(config, config.peers[one], config.peers[other]);
    CHECK(way == share_dictionary(config, config.peers[other], config.peers[one]));
    return way;
  };
  for (int one = 0; one < 4; ++one)
    for (int other = 0; other < 4; ++other) CHECK_FALSE(shared(one, other));
  config.dictionary.share = {"labs"};
  CHECK(shared(0, 1));
  CHECK_FALSE(shared(0, 2));
  CHECK_FALSE(shared(1, 2));
  CHECK_FALSE(shared(0, 3));
  config.dictionary.share = {"labs", "north"};
  CHECK(shared(0, 2));
  CHECK_FALSE(shared(1, 2));
  CHECK_FALSE(shared(1, 3));
}

TEST_CASE("a group without effect causes a warning") {
  Config config;
  config.peers = {peer("a", {"labs", "north"}), peer("b", {"labs"})};
  config.dictionary.share = {"labs"};
  CHECK(sharing_warnings(config) ==
        std::vector<std::string>{"The peer \"a\" is in the group \"north\", which is not in [dictionary] "
                                 "share, so the group has no effect."});
  config.peers[0].groups = {};
  CHECK(sharing_warnings(config) ==
        std::vector<std::string>{"[dictionary] share contains the group \"labs\", but only one peer is in it, so "
                                 "nothing is shared: two or more [[peer]] need groups = [\"labs\"]."});
}

}  // namespace
}  // namespace longhaul::config
