// SPDX-License-Identifier: Apache-2.0
#include "proxy/path_keeper.h"

#include <catch2/catch.hpp>

#include "temporary_folder.h"

namespace longhaul {
namespace {

using link::udp::PathBook;
using namespace std::chrono_literals;

const std::string kPeer = "sha256:" + std::string(64, 'a');

PathBook knows(std::uint64_t rate) {
  PathBook book;
  book.put(kPeer, {rate, 100ms});
  return book;
}

struct Keeper {
  Keeper(const TemporaryFolder& folder, PathBook now)
      : keeper(io, folder.path() / "paths", [now] { return now; }) {}
  boost::asio::io_context io;
  PathKeeper keeper;
};

TEST_CASE("a new daemon knows the paths that the previous one knew") {
  TemporaryFolder folder;
  Keeper first(folder, knows(6'000'000));
  CHECK(first.keeper.known().empty());
  first.keeper.begin();
  first.keeper.stop();
  first.io.run();  // nothing is left to wait for

  Keeper second(folder, {});
  REQUIRE(second.keeper.known().find(kPeer));
  CHECK(second.keeper.known().find(kPeer)->rate == 6'000'000);
  second.keeper.begin();
  second.keeper.stop();  // it learnt nothing: what is written stays
  CHECK_FALSE(Keeper(folder, {}).keeper.known().empty());
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a damaged file of paths is ignored and replaced") {
  TemporaryFolder folder;
  for (const std::string& text :
       {std::string(), std::string("longhaul paths 1\n"), knows(6'000'000).text().substr(1),
        std::string(3 << 20, 'x'), std::string("\0\0\0\0", 4)}) {
    folder.write("paths", text);
    Keeper reading(folder, knows(5'000'000));
    CHECK(reading.keeper.known().empty());
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
  CHECK(keeper.keeper.known().empty());
  keeper.keeper.begin();
  keeper.keeper.stop();
  CHECK(folder.read("paths/file") == "in the way");
}

}  // namespace
}  // namespace longhaul
