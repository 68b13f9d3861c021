// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/trees.h"

#include <catch2/catch.hpp>

using namespace longhaul::smb;
using namespace longhaul::smb::smb2;

TEST_CASE("a tree belongs to one session, and a number that is used again means the new share") {
  Trees trees;
  CHECK(trees.connected(1, 7, {.type = ShareType::pipe}));
  CHECK_FALSE(trees.find(2, 7));
  CHECK_FALSE(trees.find(1, 8));
  CHECK(trees.connected(1, 7, {.type = ShareType::disk, .flags = 3, .capabilities = 4}));
  REQUIRE(trees.find(1, 7));
  CHECK(trees.find(1, 7)->type == ShareType::disk);
  CHECK(trees.find(1, 7)->flags == 3);
  CHECK(trees.find(1, 7)->capabilities == 4);
  trees.disconnected(1, 7);
  CHECK_FALSE(trees.find(1, 7));
}

TEST_CASE("all trees of a session end with it, and no others") {
  Trees trees;
  for (const SessionId session : {1, 2, 3})
    for (const TreeId tree : {TreeId{0}, TreeId{5}, ~TreeId{0}}) CHECK(trees.connected(session, tree, {}));
  trees.session_ended(2);
  for (const TreeId tree : {TreeId{0}, TreeId{5}, ~TreeId{0}}) {
    CHECK(trees.find(1, tree));
    CHECK_FALSE(trees.find(2, tree));
    CHECK(trees.find(3, tree));
  }
}

TEST_CASE("only so many trees are tracked") {
  Trees trees;
  for (TreeId n = 0; n < Trees::kMost; ++n) REQUIRE(trees.connected(1, n, {}));
  CHECK_FALSE(trees.connected(1, Trees::kMost, {}));
  CHECK_FALSE(trees.find(1, Trees::kMost));
  trees.disconnected(1, 0);
  CHECK(trees.connected(1, Trees::kMost, {}));
}
