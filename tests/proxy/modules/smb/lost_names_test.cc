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
  const LostWrites::File file = file_named({}, u"DATA", u"\\dir\\a.txt");
  CHECK(file.share == u"DATA");
  CHECK(file.path == u"DIR\\A.TXT");
  CHECK(file.spelled == u"dir\\a.txt");
}

TEST_CASE("names that a server takes for one file are one in records") {
  for (const auto* name :
       {u"a\\b", u"a\\\\b", u"a\\.\\b", u"a/b", u"a\\c\\..\\b", u"\\a\\b\\", u"a\\b::$data", u"..\\a\\b"})
    CHECK(file_named({}, u"DATA", name).path == u"A\\B");
  CHECK(file_named({}, u"DATA", u"server\\Data\\a\\b", NameForm::dfs).path == u"A\\B");
  CHECK(file_named({}, u"DATA", u"\\server\\data\\a\\b", NameForm::dfs).spelled == u"a\\b");
  CHECK(file_named({}, u"DATA", u"server\\data\\b").path == u"SERVER\\DATA\\B");
  CHECK(file_named({}, u"DATA", u"a\\b", NameForm::dfs).path == u"A\\B");
  CHECK(file_named({}, u"DATA", u"").path.empty());
}

TEST_CASE("a stream is told from its file, which has an unnamed one") {
  CHECK(names_stream(u"a:b"));
  CHECK(names_stream(u"a:b:$DATA"));
  CHECK(names_stream(u":b"));
  CHECK_FALSE(names_stream(u"a::$Data"));
  CHECK_FALSE(names_stream(u"a"));
}

TEST_CASE("a lost file is shown as share and path, in UTF-8") {
  CHECK(display_name({.share = u"DATA", .path = u"DIR\\\x4E2D\xD83D\xDE00 \n.TXT"}) ==
        "DATA\\DIR\\\xE4\xB8\xAD\xF0\x9F\x98\x80 \n.TXT");
}

}  // namespace longhaul::smb
