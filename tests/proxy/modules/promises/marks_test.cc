// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/promises/marks.h"

#include <xxhash.h>

#include <catch2/catch.hpp>
#include <cstdio>

#include "proxy/modules/promises/marking_host.h"

namespace longhaul::promises {
namespace {

using test::Host;
using test::named;
using State = OpenMarks::State;

OpenKey open(std::uint64_t number) { return {.session = number}; }
std::u16string letter(std::uint64_t number) { return {static_cast<char16_t>(u'A' + number)}; }

}  // namespace

TEST_CASE("marks made at a time share one sync, after which their flow is told") {
  Host host(1);
  OpenMarks flow(host.lost), other(host.lost);
  int told = 0;
  flow.on_news([&] { ++told; });
  flow.mark(open(1), named(u"A"));
  flow.mark(open(2), named(u"B"));
  flow.mark(open(2), named(u"B"));
  other.mark(open(3), named(u"C"));
  CHECK(host.news > 0);
  CHECK(flow.state(open(1)) == State::pending);
  CHECK(flow.poll().empty());
  host.write();
  CHECK(host.syncs == 1);
  CHECK(told == 1);
  CHECK(flow.poll().size() == 2);
  CHECK(flow.poll().empty());
  CHECK(other.state(open(3)) == State::durable);
  CHECK(flow.state(open(4)) == State::refused);
  flow.unmark(open(1));
  CHECK(host.marks().size() == 2);
  host.write();
  CHECK(host.syncs == 1);  // a mark too many only costs an error too many
}

TEST_CASE("the daemon after a power cut tells of each file that is marked, once") {
  Host before(7);
  OpenMarks flow(before.lost);
  for (std::uint64_t i = 1; i <= 3; ++i) flow.mark(open(i), named(letter(i - 1)), i);
  before.write();
  flow.unmark(open(2));
  before.write();
  flow.mark(open(4), named(u"TOO LATE"));

  SECTION("with all that was written") {
    Host next(8, before.file);
    CHECK(next.understood);
    CHECK(next.marks().number_before() == 7);
    REQUIRE(next.lost->waiting() == 2);
    CHECK(next.lost->has_record(named(u"A")));
    CHECK_FALSE(next.lost->has_record(named(u"B")));
    CHECK(next.lost->records().back().loss.cause == Cause::interrupted);
    next.lost->known_to(1, named(u"A"));  // a far half's suspicion, of which the near half knows better
    CHECK(next.lost->waiting() == 1);
    // A mark stays as long as nobody was told, whatever happens to the record on disk.
    next.write();
    Host again(9, next.synced);
    CHECK(again.lost->waiting() == 1);
    CHECK(again.lost->take(named(u"C")));
    CHECK(again.marks().size() == 0);
    again.write();
    CHECK(Host(10, again.synced).lost->waiting() == 0);
  }
  SECTION("with what was synced") {
    Host next(8, before.synced);
    CHECK(next.lost->waiting() == 3);  // the end of B's mark was not
  }
}

TEST_CASE("what a power cut tore out of the file damages no other mark") {
  Host before(1);
  OpenMarks flow(before.lost);
  for (std::uint64_t i = 0; i < 20; ++i) flow.mark(open(i), named(letter(i)));
  before.write();
  for (std::size_t at = before.file.find('\n') + 1; at < before.file.size(); at += 7) {
    std::string torn = before.file;
    torn[at] ^= 1;
    Host next(2, torn);
    CHECK(next.understood);
    CHECK(next.lost->waiting() >= 18);  // where a line break was hit, two lines
    CHECK(Host(2, before.file.substr(0, at)).understood);
  }
  CHECK_FALSE(Host(2, "longhaul promised-files 2 1 0123456789abcdef\n").understood);
}

TEST_CASE("a mark stays until the client was told of what the file has lost") {
  Host host(1);
  {
    OpenMarks flow(host.lost);
    flow.mark(open(1), named(u"A"));
    flow.mark(open(2), named(u"B"));
    host.write();
    host.lost->add(named(u"A"), {.cause = Cause::link_lost});
  }
  CHECK(host.marks().size() == 1);
  SECTION("told") { CHECK(host.lost->take(named(u"A"))); }
  SECTION("emptied") { host.lost->forget(named(u"A")); }
  SECTION("renamed, then told") {
    host.lost->moved(named(u"A"), named(u"D"));
    host.write();
    CHECK(Host(2, host.synced).lost->has_record(named(u"D")));
    CHECK(host.lost->take(named(u"D")));
  }
  CHECK(host.marks().size() == 0);
}

TEST_CASE("a renamed file is marked under its new name before anything more is promised") {
  Host host(1);
  OpenMarks flow(host.lost);
  flow.mark(open(1), named(u"A"));
  host.write();
  flow.marked_at_twin(open(1));
  CHECK(flow.poll().size() == 1);
  host.lost->moved(named(u"A"), named(u"B"));
  CHECK(flow.state(open(1)) == State::pending);
  CHECK_FALSE(flow.is_marked_at_twin(open(1)));
  CHECK(Host(2, host.synced).lost->has_record(named(u"A")));
  host.write();
  CHECK(flow.state(open(1)) == State::durable);
  CHECK(flow.poll().size() == 1);
  Host next(2, host.synced);
  CHECK(next.lost->has_record(named(u"B")));
  CHECK_FALSE(next.lost->has_record(named(u"A")));
  flow.unmark(open(1));
  CHECK(host.marks().size() == 0);
}

TEST_CASE("the marks below a folder that is renamed follow it") {
  Host host(1);
  OpenMarks flow(host.lost);
  flow.mark(open(1), named(u"D\\A"));
  flow.mark(open(2), named(u"D\\E\\B"));
  flow.mark(open(3), named(u"DA"));
  host.write();
  host.lost->moved(named(u"D"), named(u"NEW"));
  host.write();
  Host next(2, host.synced);
  CHECK(next.lost->waiting() == 3);
  CHECK(next.lost->has_record(named(u"NEW\\A")));
  CHECK(next.lost->has_record(named(u"NEW\\E\\B")));
  CHECK(next.lost->has_record(named(u"DA")));
}

TEST_CASE("a renamed file stays marked where there are as many marks as may be") {
  Host host(1);
  OpenMarks flow(host.lost);
  const auto name = [](std::uint64_t number) {
    std::u16string text = u"F";
    for (int i = 0; i < 4; ++i, number /= 10) text += static_cast<char16_t>(u'0' + number % 10);
    return text;
  };
  for (std::uint64_t i = 0; i < LostRecords::kMost; ++i)
    flow.mark(open(i), named(name(i), static_cast<std::uint8_t>(i / Marks::kMostOfClient)));
  REQUIRE(host.marks().size() == LostRecords::kMost);
  host.write();
  host.lost->moved(named(name(7), 0), named(u"NEW", 0));
  host.write();
  Host next(2, host.synced);
  CHECK(next.lost->has_record(named(u"NEW", 0)));
  CHECK(next.lost->waiting() == LostRecords::kMost);
}

TEST_CASE("where the disk fails nothing is marked, and it is asked again for the next file") {
  Host host(1);
  OpenMarks flow(host.lost);
  int told = 0;
  flow.on_news([&] { ++told; });
  flow.mark(open(1), named(u"A"));
  host.write(false);
  CHECK(told == 1);
  CHECK(flow.state(open(1)) == State::refused);
  CHECK(host.marks().size() == 0);
  flow.mark(open(1), named(u"A"));
  CHECK(flow.state(open(1)) == State::refused);
  host.write();
  CHECK(flow.state(open(1)) == State::durable);
  CHECK(Host(2, host.synced).lost->waiting() == 1);
}

TEST_CASE("nobody makes the file of marks grow, or takes others' room") {
  Host host(1);
  OpenMarks flow(host.lost);
  std::size_t largest = 0;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    flow.mark(open(i), named(std::u16string(300, static_cast<char16_t>(i + 1))));
    host.write();
    largest = std::max(largest, host.file.size());
    if (i % 2) flow.unmark(open(i));
  }
  CHECK(host.marks().size() == Marks::kMostOfClient);
  CHECK(flow.state(open(2998)) == State::refused);
  CHECK(largest < 2 << 20);
  OpenMarks other(host.lost);
  other.mark(open(1), named(u"A", 2));
  host.write();
  CHECK(other.state(open(1)) == State::durable);
  CHECK(Host(2, host.synced).lost->waiting() == Marks::kMostOfClient + 1);
}

TEST_CASE("marks keep the spelling of names, and end with the record of their very file") {
  const auto spelled = [](std::u16string spelling) {
    LostWrites::File file = named(u"DATA");
    file.spelled = std::move(spelling);
    return file;
  };
  Host before(7);
  OpenMarks flow(before.lost);
  flow.mark(open(1), spelled(u"data"));
  flow.mark(open(2), spelled(u"Data"));
  before.write();
  Host next(8, before.file);
  CHECK(next.lost->waiting() == 2);
  next.write();
  next.lost->forget(spelled(u"data"));
  next.write();
  Host last(9, next.file);
  REQUIRE(last.lost->waiting() == 1);
  CHECK(last.lost->records().front().file.spelled == u"Data");
}

TEST_CASE("marks of a daemon that did not spell their names are read") {
  std::string file;
  for (std::string line : {"longhaul promised-files 1 7 ",
                           "+ 1 0 00000000000000000000000000000001 00000000000000000000000000000000 445 "
                           "-00530048004100520045 -0041 "}) {
    char sum[32];
    std::snprintf(sum, sizeof sum, "%016llx\n",
                  static_cast<unsigned long long>(XXH3_64bits(line.data(), line.size())));
    file += line + sum;
  }
  Host next(8, file);
  CHECK(next.understood);
  CHECK(next.lost->has_record(named(u"A")));
}

TEST_CASE("a mark that has no room for its new name is given up, and its flow is told") {
  Host host(1);
  OpenMarks flow(host.lost);
  const std::u16string deep(2000, u'x');
  for (std::uint64_t i = 0; i < 200; ++i) flow.mark(open(i), named(u"D\\" + deep + letter(i)));
  host.write();
  CHECK(flow.poll().size() == 200);
  host.lost->moved(named(u"D"), named(std::u16string(2000, u'y')));
  host.write();
  const auto news = flow.poll();
  const auto kept = static_cast<std::size_t>(std::ranges::count_if(news, &OpenMarks::News::is_marked));
  CHECK(news.size() == 200);
  CHECK(kept > 0);
  CHECK(kept < 200);
  CHECK(host.marks().size() == kept);
  CHECK(host.synced.size() <= Marks::kMostFileBytes);
  Host next(2, host.synced);
  CHECK(next.understood);
  CHECK(next.lost->waiting() == kept);
  // Asked again, it is refused again, without news.
  const auto refused = std::ranges::find(news, false, &OpenMarks::News::is_marked);
  flow.mark(refused->open, named(std::u16string(300'000, u'z')));
  CHECK(flow.state(refused->open) == State::refused);
  CHECK(flow.poll().empty());
}

}  // namespace longhaul::promises
