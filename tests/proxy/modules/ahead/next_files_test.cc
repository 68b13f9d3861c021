// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/ahead/next_files.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

using namespace longhaul::ahead;

namespace {

NextFiles listed(std::initializer_list<const char16_t*> names) {
  NextFiles files;
  for (const char16_t* name : names) files.add(name, 0);
  return files;
}

std::vector<std::u16string> next(NextFiles& files, std::size_t most) {
  std::vector<std::u16string> names;
  while (const NextFiles::File* file = files.next(most)) {
    names.push_back(file->name);
    files.given_out();
  }
  return names;
}

}  // namespace

TEST_CASE("two files opened in sequence reveal the order of the rest") {
  using Names = std::vector<std::u16string>;
  SECTION("as listed") {
    NextFiles files = listed({u"c", u"a", u"d", u"b", u"e"});
    files.opened(u"c");
    CHECK(next(files, 10).empty());
    files.opened(u"a");
    CHECK(next(files, 2) == Names{u"d", u"b"});
    files.opened(u"d");
    CHECK(next(files, 2) == Names{u"e"});
    files.opened(u"b");
    CHECK(next(files, 10).empty());
  }
  SECTION("by name") {
    NextFiles files = listed({u"c", u"a", u"B", u"b", u"D"});
    files.opened(u"B");
    files.opened(u"D");
    CHECK(next(files, 10) == Names{u"a", u"b", u"c"});
  }
  SECTION("in any case of letters") {
    NextFiles files = listed({u"c", u"a", u"E", u"B", u"D"});
    files.opened(u"a");
    files.opened(u"B");
    CHECK(next(files, 10) == Names{u"c", u"D", u"E"});
  }
  SECTION("by the numbers in names") {
    NextFiles files = listed({u"p10", u"p9", u"p1", u"p100", u"p2"});
    files.opened(u"p9");
    files.opened(u"p10");
    CHECK(next(files, 10) == Names{u"p100"});
  }
}

TEST_CASE("a client that opens files in no order, or others, gets none ahead") {
  NextFiles files = listed({u"a", u"b", u"c", u"d", u"e", u"f"});
  for (const char16_t* name : {u"d", u"b", u"f", u"a", u"e", u"c"}) {
    CHECK(files.opened(name));
    CHECK(files.next(10) == nullptr);
  }
  CHECK_FALSE(files.opened(u"other"));
  CHECK_FALSE(NextFiles().opened(u"a"));
}

TEST_CASE("a file opened twice, or a few skipped, do not end a sequence") {
  NextFiles files = listed({u"a", u"b", u"c", u"d", u"e", u"f"});
  files.opened(u"a");
  files.opened(u"b");
  files.opened(u"b");
  files.opened(u"d");
  const NextFiles::File* file = files.next(1);
  REQUIRE(file);
  CHECK(file->name == u"e");
  files.opened(u"a");
  CHECK(files.next(10) == nullptr);
}

TEST_CASE("a file is suggested once while the client follows the sequence") {
  NextFiles files;
  for (int i = 0; i < 50; ++i) files.add(u"f" + std::u16string(1, static_cast<char16_t>(u'A' + i)), 0);
  std::vector<std::u16string> all;
  for (int i = 0; i < 50; ++i) {
    files.opened(u"f" + std::u16string(1, static_cast<char16_t>(u'A' + i)));
    for (auto& name : next(files, 7)) all.push_back(name);
  }
  CHECK(all.size() == 48);
  CHECK(std::adjacent_find(all.begin(), all.end(), std::greater_equal<>()) == all.end());
}
