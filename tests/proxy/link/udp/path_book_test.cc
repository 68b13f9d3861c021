// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/path_book.h"

#include <catch2/catch.hpp>

namespace longhaul::link::udp {
namespace {

using namespace std::chrono_literals;

const PathBook::Path kBranch{"sha256:" + std::string(64, 'a'), ""},
    kOther{"sha256:" + std::string(64, '0'), "lte"};
constexpr PathBook::Time kThen{std::chrono::seconds(1'700'000'000)};

PathBook two_paths() {
  PathBook book;
  book.put(kBranch, {6'480'000, 250'125us}, kThen);
  book.put(kOther, {193'000, 1500ns}, kThen + 1s);
  return book;
}

TEST_CASE("path measurements are read back as written") {
  const auto read = PathBook::parse(two_paths().text());
  REQUIRE(read);
  REQUIRE(read->find(kBranch));
  CHECK(read->find(kBranch)->rate == 6'480'000);
  CHECK(read->find(kBranch)->min_rtt == 250'125us);
  REQUIRE(read->find(kOther));
  CHECK(read->find(kOther)->min_rtt == 1500ns);
  CHECK_FALSE(read->find({"sha256:" + std::string(64, 'f'), ""}));
  CHECK_FALSE(read->find({kBranch.peer, kOther.line}));
  CHECK(read->text() == two_paths().text());
  CHECK(PathBook::parse(PathBook().text()));
}

TEST_CASE("later versions can read the text of a path book") {
  PathBook book;
  const std::string peer = "sha256:" + std::string(64, '1');
  book.put({peer, ""}, {6'480'000, 100ms}, kThen);
  book.put({peer, "mpls"}, {193'000, 20ms}, kThen + 60s);
  CHECK(book.text() == "longhaul paths 2\n" + peer + " 6480000 100000000 1700000000 \n" + peer +
                           " 193000 20000000 1700000060 mpls\nsum 3e62bb22afffdb09\n");
}

TEST_CASE("a path book with any byte changed, missing or added is rejected") {
  const std::string text = two_paths().text();
  for (std::size_t i = 0; i < text.size(); ++i) {
    INFO("byte " << i);
    CHECK_FALSE(PathBook::parse(text.substr(0, i)));
    for (const int bit : {1, 4, 16}) {
      std::string changed = text;
      changed[i] = static_cast<char>(changed[i] ^ bit);
      CHECK_FALSE(PathBook::parse(changed));
    }
    CHECK_FALSE(PathBook::parse(text.substr(0, i) + "1" + text.substr(i)));
  }
  CHECK_FALSE(PathBook::parse(text + text));
  CHECK_FALSE(PathBook::parse(std::string(2 << 20, 'x')));
}

TEST_CASE("impossible values are not written to a path book") {
  PathBook book;
  book.put(kBranch, {0, 10ms});
  book.put(kBranch, {1'000, 0ms});
  book.put(kBranch, {1'000, -1ms});
  book.put(kBranch, {1'000, 61s});
  book.put(kBranch, {~std::uint64_t{0}, 10ms});
  book.put({"two words", ""}, {1'000, 10ms});
  book.put({"", ""}, {1'000, 10ms});
  book.put({kBranch.peer, "two words"}, {1'000, 10ms});
  book.put({kBranch.peer, "line\nbreak"}, {1'000, 10ms});
  book.put({kBranch.peer, std::string(65, 'n')}, {1'000, 10ms});
  book.put({std::string(129, 'n'), ""}, {1'000, 10ms});
  book.put(kBranch, {1'000, 10ms}, PathBook::Time(-1s));
  CHECK(book.empty());
}

TEST_CASE("a path book never contains more paths than it can read") {
  PathBook book;
  for (std::size_t i = 0; i < PathBook::kMostPaths + 10; ++i)
    book.put({std::string(120, 'e') + std::to_string(10'000'000 + i), std::string(64, 'n')},
             {100'000'000'000, 59s}, PathBook::Time::max());
  const std::string text = book.text();
  CHECK(text.size() <= PathBook::kMostBytes);
  const auto read = PathBook::parse(text);
  REQUIRE(read);
  CHECK(read->text() == text);
}

TEST_CASE("small changes of a rate leave the path book unchanged") {
  PathBook changed = two_paths();
  CHECK(changed.resembles(two_paths()));
  changed.put(kBranch, {6'300'000, 251ms}, kThen + 9min);
  CHECK(changed.resembles(two_paths()));
  changed.put(kBranch, {6'300'000, 251ms}, kThen + 11min);
  CHECK_FALSE(changed.resembles(two_paths()));
  changed.put(kBranch, {5'000'000, 251ms}, kThen);
  CHECK_FALSE(changed.resembles(two_paths()));
  CHECK_FALSE(PathBook().resembles(two_paths()));
  CHECK_FALSE(two_paths().resembles(PathBook()));
}

TEST_CASE("the older a measurement is, the less of its rate a start begins with") {
  const PathBook book = two_paths();
  const auto trust = [&](PathBook::Time now) {
    const auto memory = book.recall(kBranch, now);
    if (memory) CHECK(memory->rate == 6'480'000);
    return memory ? memory->trust : 0;
  };
  CHECK(trust(kThen) == 0.9);
  CHECK(trust(kThen + PathBook::kRecent) == 0.9);
  CHECK(trust(kThen + PathBook::kRecent + 1s) == 0.75);
  CHECK(trust(kThen + PathBook::kOldest) == 0.75);
  CHECK(trust(kThen + PathBook::kOldest + 1s) == 0);
  CHECK(trust(kThen - 1s) == 0);  // the clock of one of the two starts was wrong
  CHECK(trust(PathBook::Time::max()) == 0);
  CHECK(trust(PathBook::Time(-1s)) == 0);
  CHECK_FALSE(book.recall({"", ""}, kThen));
}

TEST_CASE("a start never sends more than a few trains of packets at a remembered rate") {
  for (const Duration rtt : {Duration(1ns), Duration(1ms), Duration(100ms), Duration(60s)}) {
    PathBook book;
    book.put(kBranch, {125'000'000'000, rtt}, kThen);
    const auto memory = book.recall(kBranch, kThen);
    REQUIRE(memory);
    const double begun = memory->trust * static_cast<double>(memory->rate);
    CHECK(begun * seconds(rtt) <= 32 * 32 * 1500 * 1.0001);
    CHECK(begun <= 32 * 32 * 1500 * 100 * 1.0001);
    CHECK(begun > 0);
  }
}

TEST_CASE("only what was measured anew gets a new date") {
  PathBook now;
  now.put(kBranch, {6'480'000, 250'125us});
  now.put(kOther, {193'001, 1500ns});
  now.put({kOther.peer, "new"}, {1'000, 1ms});
  now.date(two_paths(), kThen + 1h);
  PathBook expected;
  expected.put(kBranch, {6'480'000, 250'125us}, kThen);
  expected.put(kOther, {193'001, 1500ns}, kThen + 1h);
  expected.put({kOther.peer, "new"}, {1'000, 1ms}, kThen + 1h);
  CHECK(now.text() == expected.text());
}

}  // namespace
}  // namespace longhaul::link::udp
