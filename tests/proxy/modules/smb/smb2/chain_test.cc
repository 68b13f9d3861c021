// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/chain.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/smb2/ids.h"

using namespace longhaul::smb;
using namespace longhaul::smb::smb2;

namespace {

Header link_of(SessionId session, TreeId tree, std::uint32_t flags = 0) {
  Header header;
  header.session_id = session;
  header.tree_id = tree;
  header.flags = flags;
  return header;
}

constexpr SessionId kAllOnes = ~SessionId{0};
constexpr TreeId kOnes = ~TreeId{0};

}  // namespace

TEST_CASE("a related element takes the session and the tree of the one before, unless it names its own") {
  Chain chain;
  chain.begin(link_of(1, 2));
  chain.begin(link_of(kAllOnes, kOnes, header_flags::related));
  CHECK(chain.session() == 1);
  CHECK(chain.tree() == 2);
  chain.begin(link_of(kAllOnes, 5, header_flags::related));
  CHECK(chain.session() == 1);
  CHECK(chain.tree() == 5);
  chain.begin(link_of(4, kOnes, header_flags::related));
  CHECK(chain.session() == 4);
  CHECK(chain.tree() == 5);
}

TEST_CASE("an element that is not related has its own ids, even if they are all ones") {
  Chain chain;
  chain.begin(link_of(1, 2));
  chain.begin(link_of(kAllOnes, kOnes));
  CHECK(chain.session() == kAllOnes);
  CHECK(chain.tree() == kOnes);
}

TEST_CASE("a chain is about the file named last, and begins without one") {
  Chain chain;
  chain.begin(link_of(1, 2));
  chain.names(kPreviousFile);
  CHECK_FALSE(chain.file());
  chain.names({3, 4});
  chain.begin(link_of(1, 2, header_flags::related));
  chain.names(kPreviousFile);
  CHECK(chain.file() == FileId{3, 4});
  chain.begin(link_of(1, 2));
  CHECK_FALSE(chain.file());
}

TEST_CASE("after a CREATE a chain is about the file that it opens, until another file is named") {
  Chain chain;
  chain.begin(link_of(1, 2));
  chain.names({3, 4});
  chain.begin(link_of(1, 2, header_flags::related));
  chain.creates(9_message);
  CHECK_FALSE(chain.file());
  CHECK(chain.create() == 9_message);
  chain.begin(link_of(1, 2, header_flags::related));
  chain.names(kPreviousFile);
  CHECK(chain.create() == 9_message);
  chain.names({5, 6});
  CHECK_FALSE(chain.create());
  CHECK(chain.file() == FileId{5, 6});
  chain.creates(10_message);
  chain.begin(link_of(1, 2));
  CHECK_FALSE(chain.create());
}
