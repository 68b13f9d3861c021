// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/promises/doubts.h"

#include <catch2/catch.hpp>

#include "proxy/modules/promises/marking_host.h"
#include "tests/proxy/modules/twin/numbers.h"

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
  CHECK_FALSE(doubts.tells(named(u"A"), LostWrites::Use::writes, 1_number));
  Doubts through_another(lost, ends);
  SECTION("another tells the client, once") {
    through_another.near_is({.near = 9});
    CHECK_FALSE(through_another.tells(named(u"C"), LostWrites::Use::replaces, 2_number));
    CHECK(through_another.tells(named(u"C"), LostWrites::Use::writes, 3_number));
    through_another.loss_read({2_number});
    CHECK(through_another.any());
    through_another.loss_read({3_number});
    CHECK_FALSE(through_another.any());
  }
  SECTION("its successor knows better too") {
    through_another.near_is({.near = 9, .before = 7});
    CHECK_FALSE(through_another.tells(named(u"C"), LostWrites::Use::writes, 4_number));
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
  const auto news = doubts.poll_marks();
  REQUIRE(news.size() == 1);
  CHECK(news.front().open == key_of_doubt(0));
  CHECK(news.front().is_marked);
  CHECK(doubts.poll_marks().empty());
  doubts.unmark(key_of_doubt(0));
  CHECK(host.marks().size() == 0);
  fail(1);
  doubts.settled(key_of_doubt(1));
  CHECK(host.marks().size() == 0);
  for (std::uint64_t i = 1; i <= 100; ++i) fail(i);
  CHECK(host.marks().size() == 64);
}

TEST_CASE("a file that was closed with a failed promise, and renamed, is lost under its new name") {
  test::Host host(1);
  Doubts doubts(host.lost, named(u"A").ends);
  doubts.allowed({.early = true});
  doubts.closed_failed(key_of_doubt(1), named(u"D\\A"));
  host.lost->moved(named(u"D"), named(u"E"));
  doubts.lose(Cause::near_vanished, {});
  CHECK(host.lost->has_record(named(u"E\\A")));
  CHECK_FALSE(host.lost->has_record(named(u"D\\A")));
}

TEST_CASE("what cannot be read is reset for what the near daemon does not know of") {
  test::Host host(1);
  Doubts doubts(host.lost, named(u"A").ends);
  host.lost->add(named(u"A"), {.cause = Cause::near_vanished, .near = 7});
  host.lost->add(named(u"B"), {.cause = Cause::near_vanished, .near = 6});
  host.lost->add(named(u"C", 2), {.cause = Cause::near_vanished, .near = 7});
  SECTION("the same daemon, and the one after it") {
    doubts.near_is({.near = 7, .before = 6});
    CHECK_FALSE(doubts.tells_all_by_reset());
  }
  SECTION("another") {
    doubts.near_is({.near = 9, .before = 7});
    CHECK(doubts.tells_all_by_reset());
    CHECK(host.lost->has_record(named(u"B")));
  }
  CHECK_FALSE(host.lost->has_record(named(u"A")));
  CHECK(host.lost->has_record(named(u"C", 2)));
}

TEST_CASE("nothing may be promised to a client with a flow here that nobody reads") {
  test::Host host(1);
  Doubts doubts(host.lost, named(u"A").ends);
  doubts.allowed({.early = true});
  CHECK(doubts.may_promise(true));
  host.lost->live().enter_unguarded(named(u"A").ends);
  CHECK_FALSE(doubts.may_promise(true));
  host.lost->live().leave_unguarded(named(u"A").ends);
  CHECK(doubts.may_promise(true));
}

}  // namespace longhaul::promises
