// SPDX-License-Identifier: Apache-2.0
// What people are shown of losses after the client was told: the last reports, each with its file, cause,
// ranges, way and time.
#include "proxy/modules/promises/loss_reports.h"

#include <catch2/catch.hpp>

namespace longhaul::promises {
namespace {

using std::chrono::seconds;

modules::Ends ends_at(unsigned client, std::uint16_t port = 445) {
  return {.client = {std::byte(client)}, .server = {std::byte{1}}, .server_port = port};
}

LostWrites::File lost_file(std::u16string path, unsigned client = 1) {
  return {.ends = ends_at(client), .share = u"SHARE", .path = std::move(path)};
}

struct Reporting {
  std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>();
  std::int64_t now = 1'700'000'000;
  LossReports reports{
      lost, [](const LostWrites::File& named) { return std::string(named.path.begin(), named.path.end()); },
      [](const modules::Ends&, std::shared_ptr<LostWrites>) -> std::unique_ptr<modules::Guard> {
        return nullptr;
      },
      [this] { return now; }};
};

}  // namespace

TEST_CASE("a report is kept with its file, cause, ranges, way and time") {
  Reporting daemon;
  daemon.lost->refused(lost_file(u"A"), {0, 10}, 0xC000007F);
  daemon.lost->refused(lost_file(u"A"), {20, 30}, 0xC000007F);
  daemon.lost->told_late(lost_file(u"A"));
  daemon.now += 5;
  daemon.lost->add(lost_file(u"B"), {.cause = Cause::link_lost, .ranges = {{5, 6}}});
  CHECK(daemon.reports.told(ends_at(1), 9).size() == 1);
  CHECK(daemon.lost->take(lost_file(u"B"), LostWrites::Use::writes));

  const auto told = daemon.reports.told(ends_at(1, 139), 9);  // a client tries several ports
  REQUIRE(told.size() == 2);                                  // the latest first
  CHECK(told[0].file.name == "B");
  CHECK(told[0].file.cause == "link_lost");
  CHECK(told[0].file.ranges == std::vector<Interval>{{5, 6}});
  CHECK(told[0].how == "next_open");
  CHECK(told[0].at.time_since_epoch() == seconds(daemon.now));
  CHECK(told[1].file.name == "A");
  CHECK(told[1].file.cause == "refused");
  CHECK(told[1].file.ranges == std::vector<Interval>{{0, 10}, {20, 30}});
  CHECK(told[1].how == "late_error");
  CHECK(told[1].at.time_since_epoch() == seconds(daemon.now - 5));
  CHECK(daemon.reports.told(ends_at(1), 1).size() == 1);
  CHECK(daemon.reports.told(ends_at(2), 9).empty());
}

TEST_CASE("as many reports are kept as have room, the latest") {
  Reporting daemon;
  const auto report = [&](const std::u16string& path) {
    daemon.lost->add(lost_file(path), {});
    CHECK(daemon.lost->take(lost_file(path), LostWrites::Use::writes));
  };
  for (std::size_t n = 0; n < LossReports::kMostTold + 10; ++n) report(u"F" + std::u16string(n + 1, u'x'));
  auto told = daemon.reports.told(ends_at(1), 1000);
  CHECK(told.size() == LossReports::kMostTold);
  CHECK(told.front().file.name.size() == LossReports::kMostTold + 11);
  report(std::u16string(LossReports::kMostToldNameBytes - 10, u'L'));
  report(u"last");
  told = daemon.reports.told(ends_at(1), 1000);
  REQUIRE(told.size() == 2);
  CHECK(told.front().file.name == "last");
}

}  // namespace longhaul::promises
