// SPDX-License-Identifier: Apache-2.0
#include "proxy/state_keeper.h"

#include <catch2/catch.hpp>

#include "proxy/modules/promises/lost_book.h"
#include "proxy/modules/smb/descriptor.h"
#include "proxy/modules/smb/loss_reports.h"
#include "temporary_folder.h"

namespace longhaul {
namespace {

using smb::LostWrites;

struct Daemon {
  explicit Daemon(const TemporaryFolder& folder)
      : keeper(io, folder.path(), smb::kDescriptor.state, reports) {}
  boost::asio::io_context io;
  std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>();
  smb::LossReports reports = longhaul::smb::loss_reports(lost);
  StateKeeper keeper;
};

LostWrites::File named(std::u16string path) { return {.share = u"SHARE", .path = std::move(path)}; }

std::size_t records_in(const TemporaryFolder& folder) {
  const auto records = smb::parse_lost_book(folder.read("lost-writes"));
  return records ? records->size() : 999;
}

TEST_CASE("losses recorded by a killed daemon are reported by the next one") {
  TemporaryFolder folder;
  Daemon killed(folder);
  killed.lost->add(named(u"A"), {.cause = smb::Cause::server_gone});
  killed.lost->add(named(u"B"), {});
  while (!std::filesystem::exists(folder.path() / "lost-writes")) killed.io.poll();
  CHECK(records_in(folder) == 2);

  Daemon next(folder);
  CHECK(next.lost->waiting() == 2);
  CHECK(next.lost->take(named(u"A")));
  CHECK_FALSE(next.lost->take(named(u"A")));
  next.keeper.stop();
  CHECK(records_in(folder) == 1);
}

TEST_CASE("losses recorded while the file is being written are saved as well") {
  TemporaryFolder folder;
  Daemon daemon(folder);
  for (char16_t letter = u'A'; letter <= u'Z'; ++letter) {
    daemon.lost->add(named(std::u16string(1, letter)), {});
    daemon.io.poll();
    daemon.io.restart();
  }
  daemon.keeper.stop();
  CHECK(records_in(folder) == 26);
  daemon.lost->add(named(u"too late"), {});
}

TEST_CASE("a damaged file of lost writes is ignored and replaced") {
  TemporaryFolder folder;
  for (const std::string& text :
       {std::string(), std::string("longhaul lost-writes 1\n"), std::string(9 << 20, 'x')}) {
    folder.write("lost-writes", text);
    Daemon daemon(folder);
    CHECK(daemon.lost->waiting() == 0);
    daemon.lost->add(named(u"A"), {});
    daemon.keeper.stop();
    CHECK(records_in(folder) == 1);
  }
}

}  // namespace
}  // namespace longhaul
