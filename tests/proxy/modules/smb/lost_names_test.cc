// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/lost_names.h"

#include <catch2/catch.hpp>

namespace longhaul::smb {

using Use = LostWrites::Use;

TEST_CASE("the purpose of an open follows from its access and disposition") {
  CHECK(use_of(0x1, 1) == Use::reads);
  CHECK(use_of(0x80, 1) == Use::attributes);
  CHECK(use_of(0x10080, 1) == Use::attributes);  // DELETE
  CHECK(use_of(0x3, 1) == Use::writes);
  CHECK(use_of(0x4, 3) == Use::writes);          // at its end
  CHECK(use_of(0x0200'0000, 1) == Use::writes);  // MAXIMUM_ALLOWED
  CHECK(use_of(0x3, 5) == Use::replaces);
  CHECK(use_of(0x1, 2) == Use::replaces);
}

TEST_CASE("names match for every name of the server, and with the server's case folding") {
  CHECK(share_of(u"\\\\server\\Data") == u"DATA");
  CHECK(share_of(u"\\\\10.0.0.1\\data\\") == u"DATA");
  CHECK(share_of(u"data") == u"DATA");
  CHECK(path_of(u"\\dir\\a.txt") == u"DIR\\A.TXT");
}

TEST_CASE("a lost file is shown as share and path, in UTF-8") {
  CHECK(display_name({.share = u"DATA", .path = u"DIR\\\x4E2D\xD83D\xDE00 \n.TXT"}) ==
        "DATA\\DIR\\\xE4\xB8\xAD\xF0\x9F\x98\x80 \n.TXT");
}

}  // namespace longhaul::smb
