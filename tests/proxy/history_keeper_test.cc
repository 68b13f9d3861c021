// SPDX-License-Identifier: Apache-2.0
#include "proxy/history_keeper.h"

#include <catch2/catch.hpp>

#include "temporary_folder.h"

namespace longhaul {
namespace {

std::uint64_t carried(const control::History& history) {
  std::uint64_t all = 0;
  const auto& hours = history.series()[2];
  for (std::uint64_t i = 0; i < hours.kept(); ++i) all += hours.at(hours.newest() - i).bytes.lan_in;
  return all;
}

struct HistoryAtWork {
  HistoryAtWork(const TemporaryFolder& folder, std::uint64_t bytes)
      : keeper(io, folder.path() / "history", table) {
    table.add({}).bytes.lan_in = bytes;
  }
  void run() {
    keeper.begin();
    keeper.stop();
    io.run();  // nothing is left to wait for
  }
  boost::asio::io_context io;
  flows::FlowTable table;
  HistoryKeeper keeper;
};

TEST_CASE("a new daemon continues the history of the previous one") {
  TemporaryFolder folder;
  HistoryAtWork(folder, 1000).run();
  HistoryAtWork second(folder, 70);
  CHECK(carried(second.keeper.history()) == 1000);
  second.run();
  CHECK(carried(second.keeper.history()) == 1070);
  CHECK(std::filesystem::status(folder.path() / "history").permissions() ==
        (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
}

TEST_CASE("a damaged history is ignored and replaced") {
  TemporaryFolder folder;
  for (const std::string& text :
       {std::string(), std::string("longhaul history 1\n"), std::string(3 << 20, 'x')}) {
    folder.write("history", text);
    HistoryAtWork keeper(folder, 5);
    CHECK(carried(keeper.keeper.history()) == 0);
    keeper.run();
    CHECK(control::History::parse(folder.read("history")));
  }
}

TEST_CASE("the daemon continues if the history cannot be written") {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "history");
  HistoryAtWork keeper(folder, 5);
  keeper.run();
  CHECK(carried(keeper.keeper.history()) == 5);
}

}  // namespace
}  // namespace longhaul
