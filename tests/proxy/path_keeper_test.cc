// SPDX-License-Identifier: Apache-2.0
#include "proxy/path_keeper.h"

#include <catch2/catch.hpp>

#include "temporary_folder.h"

namespace longhaul {
namespace {

using link::udp::PathBook;
using namespace std::chrono_literals;

const PathBook::Path kPath{"sha256:" + std::string(64, 'a'), "mpls"};
constexpr PathBook::Time kToday{std::chrono::seconds(1'800'000'000)};

PathBook knows(std::uint64_t rate, PathBook::Time measured = kToday) {
  PathBook book;
  book.put(kPath, {rate, 100ms}, measured);
  return book;
}

struct Keeper {
  Keeper(const TemporaryFolder& folder, PathBook now, PathBook::Time clock = kToday)
      : keeper(
            io, folder.path() / "paths", [now] { return now; }, [clock] { return clock; }) {}
  bool knows_nothing() const { return !keeper.recall(kPath); }
  boost::asio::io_context io;
  PathKeeper keeper;
};

TEST_CASE("a new daemon knows the paths that the previous one knew") {
  TemporaryFolder folder;
  Keeper first(folder, knows(6'000'000));
  CHECK(first.knows_nothing());
  first.keeper.begin();
  first.keeper.stop();
  first.io.run();  // nothing is left to wait for

  Keeper second(folder, {});
  REQUIRE(second.keeper.recall(kPath));
  CHECK(second.keeper.recall(kPath)->rate == 6'000'000);
  CHECK(second.keeper.recall(kPath)->trust < 1);
  CHECK_FALSE(second.keeper.recall({kPath.peer, ""}));
  second.keeper.begin();
  second.keeper.stop();  // it learnt nothing: what is written stays
  CHECK_FALSE(Keeper(folder, {}).knows_nothing());
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

// Each daemon of these runs for no time at all.
TEST_CASE("a measurement keeps its date however often the daemon restarts") {
  TemporaryFolder folder;
  const auto run = [&](const PathBook& found, PathBook::Time clock) {
    Keeper daemon(folder, found, clock);
    const bool knew = !daemon.knows_nothing();
    daemon.keeper.begin();
    daemon.keeper.stop();
    return knew;
  };
  run(knows(6'000'000, {}), kToday);
  for (auto hour = 1; hour <= 24; ++hour)
    CHECK(run(knows(6'000'000, {}), kToday + 1h * hour));  // as remembered
  CHECK_FALSE(run(knows(6'000'000, {}), kToday + 24h + 1s));
  // It was measured again, and the result differs by a byte.
  run(knows(6'000'001, {}), kToday + 24h);
  CHECK(run(knows(6'000'001, {}), kToday + 48h));
}

TEST_CASE("a damaged file of paths is ignored and replaced") {
  TemporaryFolder folder;
  for (const std::string& text :
       {std::string(), std::string("longhaul paths 2\n"), knows(6'000'000).text().substr(1),
        std::string(3 << 20, 'x'), std::string("\0\0\0\0", 4)}) {
    folder.write("paths", text);
    Keeper reading(folder, knows(5'000'000));
    CHECK(reading.knows_nothing());
    reading.keeper.begin();
    reading.keeper.stop();
    CHECK(folder.read("paths") == knows(5'000'000).text());
  }
}

TEST_CASE("the daemon continues if paths cannot be written") {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "paths");
  folder.write("paths/file", "in the way");
  Keeper keeper(folder, knows(1'000'000));
  CHECK(keeper.knows_nothing());
  keeper.keeper.begin();
  keeper.keeper.stop();
  CHECK(folder.read("paths/file") == "in the way");
}

}  // namespace
}  // namespace longhaul
