// SPDX-License-Identifier: Apache-2.0
#include "proxy/journal_keeper.h"

#include <catch2/catch.hpp>

#include "proxy/modules/smb/descriptor.h"
#include "proxy/modules/promises/marks.h"
#include "temporary_folder.h"

namespace longhaul {
namespace {

using promises::LostWrites;
using promises::OpenMarks;

struct MarkingDaemon {
  explicit MarkingDaemon(const TemporaryFolder& folder)
      : keeper(io, folder.path(), smb::kDescriptor.journal, lost->marks()) {}
  void mark(std::uint64_t number, std::u16string path) {
    flow.mark({.session = number}, {.share = u"SHARE", .path = std::move(path)});
  }
  OpenMarks::State state(std::uint64_t number) const { return flow.state({.session = number}); }
  void run_until_settled(std::uint64_t number) {
    while (state(number) == OpenMarks::State::pending) {
      io.restart();
      io.run_one();
    }
  }

  boost::asio::io_context io;
  std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>(1);
  JournalKeeper keeper;
  OpenMarks flow{lost};
};

TEST_CASE("a file that was marked by a killed daemon is a lost one to the next") {
  TemporaryFolder folder;
  MarkingDaemon killed(folder);
  killed.mark(1, u"A");
  killed.mark(2, u"B");
  CHECK(killed.state(1) == OpenMarks::State::pending);
  killed.run_until_settled(1);
  killed.run_until_settled(2);
  CHECK(killed.state(2) == OpenMarks::State::durable);
  killed.mark(3, u"C");
  killed.run_until_settled(3);

  MarkingDaemon next(folder);
  CHECK(next.lost->waiting() == 3);
  CHECK(next.lost->take({.share = u"SHARE", .path = u"A"}));
  next.keeper.stop();
  CHECK(MarkingDaemon(folder).lost->waiting() == 2);
}

TEST_CASE("what a daemon that ends in order does not need any more is not in the file") {
  TemporaryFolder folder;
  {
    MarkingDaemon daemon(folder);
    daemon.mark(1, u"A");
    daemon.run_until_settled(1);
    daemon.flow.unmark({.session = 1});
    daemon.keeper.stop();
  }
  CHECK(MarkingDaemon(folder).lost->waiting() == 0);
}

TEST_CASE("marks that cannot be stored are refused, and can be when the disk is there again") {
  TemporaryFolder folder;
  const auto file = folder.path() / "promised-files";
  std::filesystem::create_directories(file / "in the way");
  MarkingDaemon daemon(folder);
  daemon.mark(1, u"A");
  daemon.run_until_settled(1);
  CHECK(daemon.state(1) == OpenMarks::State::refused);
  std::filesystem::remove_all(file);
  daemon.mark(1, u"A");
  while (daemon.state(1) != OpenMarks::State::durable) {
    daemon.io.restart();
    daemon.io.run_one();
  }
  CHECK(MarkingDaemon(folder).lost->waiting() == 1);
}

}  // namespace
}  // namespace longhaul
