// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/promises/doubts.h"

#include <catch2/catch.hpp>

#include "proxy/modules/promises/marking_host.h"

namespace longhaul::promises {
namespace {

using test::named;

OpenKey key_of_doubt(std::uint64_t number) { return {.session = number}; }

}  // namespace

TEST_CASE("a far half whose near half may have promised writes records files in doubt") {
  const auto lost = std::make_shared<LostWrites>();
  const LostWrites::Ends ends = named(u"A").ends;
  Doubts doubts(lost, ends);
  const std::vector files{named(u"A")};
  doubts.lose(Cause::near_vanished, files);
  CHECK_FALSE(doubts.any());  // the near half was never allowed to promise
  doubts.allowed({.early = true});
  doubts.allowed({});
  doubts.near_is({.near = 7});
  doubts.closed_failed(key_of_doubt(3), named(u"C"));
  doubts.closed_failed(key_of_doubt(4), named(u"D"));
  doubts.settled(key_of_doubt(4));
  doubts.lose(Cause::near_vanished, files);
  CHECK(lost->waiting() == 2);
  // The same near daemon is there again, and knows better; or one that has read its marks.
  CHECK_FALSE(doubts.tells(named(u"A"), LostWrites::Use::writes, 1));
  Doubts through_another(lost, ends);
  SECTION("another tells the client, once") {
    through_another.near_is({.near = 9});
    CHECK_FALSE(through_another.tells(named(u"C"), LostWrites::Use::replaces, 2));
    CHECK(through_another.tells(named(u"C"), LostWrites::Use::writes, 3));
    through_another.loss_read({2});
    CHECK(through_another.any());
    through_another.loss_read({3});
    CHECK_FALSE(through_another.any());
  }
  SECTION("its successor knows better too") {
    through_another.near_is({.near = 9, .before = 7});
    CHECK_FALSE(through_another.tells(named(u"C"), LostWrites::Use::writes, 4));
  }
}

TEST_CASE("which opens may have promises: under the far half's own oplock, or where clients' own count") {
  Doubts doubts(std::make_shared<LostWrites>(), named(u"A").ends);
  CHECK_FALSE(doubts.may_promise(true));
  doubts.allowed({.early = true});
  CHECK(doubts.may_promise(true));
  CHECK_FALSE(doubts.may_promise(false));
  doubts.allowed({.cached = true});
  CHECK(doubts.may_promise(false));
}

TEST_CASE("a mark stays behind an open that was closed with a failed promise, within a bound") {
  test::Host host(1);
  Doubts doubts(host.lost, named(u"A").ends);
  const auto fail = [&](std::uint64_t number) {
    const LostWrites::File file = named({static_cast<char16_t>(u'A' + number)});
    doubts.mark(key_of_doubt(number), file);
    doubts.closed_failed(key_of_doubt(number), file);
  };
  doubts.mark(key_of_doubt(0), named(u"A"));
  host.write();
  CHECK(doubts.poll_marked() == std::vector{key_of_doubt(0)});
  CHECK(doubts.poll_marked().empty());
  doubts.unmark(key_of_doubt(0));
  CHECK(host.marks().size() == 0);
  fail(1);
  doubts.settled(key_of_doubt(1));
  CHECK(host.marks().size() == 0);
  for (std::uint64_t i = 1; i <= 100; ++i) fail(i);
  CHECK(host.marks().size() == 64);
}

}  // namespace longhaul::promises
