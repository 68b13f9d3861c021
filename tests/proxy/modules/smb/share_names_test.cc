// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/share_names.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/twin/numbers.h"

namespace longhaul::smb {

TEST_CASE("a tree is known by its share once the server has connected it") {
  ShareNames names;
  names.connecting(1_number, u"DATA");
  names.connecting(2_number, u"SECRET");
  CHECK(names.of(7, 1).empty());
  names.connected(1_number, 7, 1);
  names.refused(2_number);
  names.connected(2_number, 7, 2);
  names.connected(3_number, 7, 3);  // never asked
  CHECK(names.of(7, 1) == u"DATA");
  CHECK(names.of(8, 1).empty());
  CHECK(names.of(7, 2).empty());
  CHECK(names.of(7, 3).empty());
  names.connecting(4_number, u"OTHER");  // the server uses the number again
  names.connected(4_number, 7, 1);
  CHECK(names.of(7, 1) == u"OTHER");
}

TEST_CASE("trees beyond the bound have no name") {
  ShareNames names;
  for (std::uint32_t tree = 0; tree < 5000; ++tree) {
    names.connecting(MessageNumber{tree}, u"DATA");
    names.connected(MessageNumber{tree}, 1, tree);
  }
  CHECK(names.of(1, 4095) == u"DATA");
  CHECK(names.of(1, 4096).empty());
  CHECK_FALSE(names.knows_all());
  ShareNames unanswered;
  for (MessageNumber number; number < 100_number; ++number) unanswered.connecting(number, u"DATA");
  unanswered.connected(64_number, 1, 64);
  unanswered.connected(63_number, 1, 63);
  CHECK(unanswered.of(1, 64).empty());
  CHECK(unanswered.of(1, 63) == u"DATA");
}

TEST_CASE("trees that were disconnected make room for others, and are known until then") {
  ShareNames names;
  for (std::uint32_t tree = 0; tree < 10'000; ++tree) {
    names.connecting(MessageNumber{tree}, u"DATA");
    names.connected(MessageNumber{tree}, tree / 100, tree);
    if (tree % 2)
      names.disconnected(tree / 100, tree);
    else if (tree % 100 == 0 && tree > 0)
      names.logged_off(tree / 100 - 1);
    CHECK(names.of(tree / 100, tree) == u"DATA");
  }
  CHECK(names.knows_all());
  CHECK(names.of(0, 0).empty());
  names.connecting(1_number, u"OTHER");  // the same number again
  names.connected(1_number, 99, 9999);
  CHECK(names.of(99, 9999) == u"OTHER");
}

}  // namespace longhaul::smb
