// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/share_names.h"

#include <catch2/catch.hpp>

namespace longhaul::smb {

TEST_CASE("a tree is known by its share once the server has connected it") {
  ShareNames names;
  names.connecting(1, u"DATA");
  names.connecting(2, u"SECRET");
  CHECK(names.of(7, 1).empty());
  names.connected(1, 7, 1);
  names.refused(2);
  names.connected(2, 7, 2);
  names.connected(3, 7, 3);  // never asked
  CHECK(names.of(7, 1) == u"DATA");
  CHECK(names.of(8, 1).empty());
  CHECK(names.of(7, 2).empty());
  CHECK(names.of(7, 3).empty());
  names.connecting(4, u"OTHER");  // the server uses the number again
  names.connected(4, 7, 1);
  CHECK(names.of(7, 1) == u"OTHER");
}

TEST_CASE("trees beyond the bound have no name") {
  ShareNames names;
  for (MessageNumber number = 0; number < 5000; ++number) {
    names.connecting(number, u"DATA");
    names.connected(number, 1, static_cast<std::uint32_t>(number));
  }
  CHECK(names.of(1, 4095) == u"DATA");
  CHECK(names.of(1, 4096).empty());
  CHECK_FALSE(names.knows_all());
  ShareNames unanswered;
  for (MessageNumber number = 0; number < 100; ++number) unanswered.connecting(number, u"DATA");
  unanswered.connected(64, 1, 64);
  unanswered.connected(63, 1, 63);
  CHECK(unanswered.of(1, 64).empty());
  CHECK(unanswered.of(1, 63) == u"DATA");
}

TEST_CASE("trees that were disconnected make room for others, and are known until then") {
  ShareNames names;
  for (MessageNumber number = 0; number < 10'000; ++number) {
    names.connecting(number, u"DATA");
    names.connected(number, number / 100, static_cast<std::uint32_t>(number));
    if (number % 2)
      names.disconnected(number / 100, static_cast<std::uint32_t>(number));
    else if (number % 100 == 0 && number > 0)
      names.logged_off(number / 100 - 1);
    CHECK(names.of(number / 100, static_cast<std::uint32_t>(number)) == u"DATA");
  }
  CHECK(names.knows_all());
  CHECK(names.of(0, 0).empty());
  names.connecting(1, u"OTHER");  // the same number again
  names.connected(1, 99, 9999);
  CHECK(names.of(99, 9999) == u"OTHER");
}

}  // namespace longhaul::smb
