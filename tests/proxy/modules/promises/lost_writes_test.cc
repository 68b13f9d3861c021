// SPDX-License-Identifier: Apache-2.0
// Which open of a file is told that promised writes were lost, and what is kept of it until then.
#include "proxy/modules/promises/lost_writes.h"
#include "proxy/modules/promises/marks.h"

#include <catch2/catch.hpp>

namespace longhaul::promises {
namespace {

using Use = LostWrites::Use;

constexpr std::uint32_t kDiskFull = 0xC000007F;  // whatever the protocol calls it

LostWrites::Ends ends_of(unsigned client, unsigned server = 1) {
  return {.client = {std::byte(client), std::byte(client >> 8)},
          .server = {std::byte(server)},
          .server_port = 445};
}
LostWrites::File file(std::u16string path, unsigned client = 1) {
  return {.ends = ends_of(client), .share = u"SHARE", .path = std::move(path)};
}

// What was said, in order.
struct Heard final : LossJournal {
  void lost(const LostWrites::File&, const LostWrites::Loss& loss) override {
    said.push_back("lost " + std::string(kCauseNames[static_cast<std::size_t>(loss.cause)]));
  }
  void reported(const LostWrites::File&, const LostWrites::Loss& loss, Told how) override {
    said.push_back("reported " + std::string(kToldNames[static_cast<std::size_t>(how)]) + " " +
                   std::string(kCauseNames[static_cast<std::size_t>(loss.cause)]));
    for (const Interval& range : loss.ranges)
      said.back() += " " + std::to_string(range.begin) + "-" + std::to_string(range.end);
  }
  void ended(const LostWrites::File&, const LostWrites::Loss&, Ended why) override {
    said.push_back("ended " + std::string(kEndedNames[static_cast<std::size_t>(why)]));
  }
  void evicted(const LostWrites::File&) override { said.push_back("evicted"); }
  void changed() override { ++changes; }
  std::vector<std::string> said;
  int changes = 0;
};

}  // namespace

TEST_CASE("a loss is reported once to an open that may write, and before that once to one that only reads") {
  LostWrites lost;
  lost.add(file(u"A"), {});
  CHECK_FALSE(lost.take(file(u"B")));
  CHECK_FALSE(lost.take(file(u"A", 2)));
  CHECK_FALSE(lost.take(file(u"A"), Use::attributes));
  CHECK(lost.take(file(u"A"), Use::reads));
  CHECK_FALSE(lost.take(file(u"A"), Use::reads));
  CHECK(lost.any(ends_of(1)));
  CHECK(lost.take(file(u"A"), Use::writes));
  CHECK_FALSE(lost.take(file(u"A"), Use::writes));
  CHECK_FALSE(lost.take(file(u"A"), Use::reads));
  CHECK_FALSE(lost.any(ends_of(1)));
  CHECK(lost.waiting() == 0);
}

TEST_CASE("an open that replaces the content gets no report, and ends the loss only if it succeeds") {
  LostWrites lost;
  lost.add(file(u"A"), {});
  CHECK_FALSE(lost.take(file(u"A"), Use::replaces));
  CHECK(lost.any(ends_of(1)));
  lost.forget(file(u"A"));
  CHECK_FALSE(lost.any(ends_of(1)));
  CHECK_FALSE(lost.take(file(u"A")));
}

TEST_CASE("a loss suspected by a far half is void if the near daemon that made the promises is still there") {
  LostWrites lost;
  lost.add(file(u"A"), {.cause = Cause::near_vanished, .near = 7});
  lost.add(file(u"B"), {.cause = Cause::flow_cut});
  lost.known_to(0, file(u"A"));
  lost.known_to(8, file(u"A"));
  CHECK(lost.waiting() == 2);
  lost.known_to(7, file(u"A"));
  lost.known_to(0, file(u"B"));
  CHECK(lost.waiting() == 1);
  CHECK_FALSE(lost.take(file(u"A")));
  CHECK(lost.take(file(u"B")));
}

TEST_CASE("without room, the client with the most files loses its oldest record") {
  LostWrites lost;
  Heard heard;
  lost.events().set_journal(&heard);
  lost.add(file(u"THE OTHERS", 2), {});
  for (std::size_t n = 0; n < LostRecords::kMost + 10; ++n)
    lost.add(file(std::u16string(1, static_cast<char16_t>(n + 1))), {});
  CHECK(lost.waiting() == LostRecords::kMost);
  CHECK(lost.events().counters().evicted == 11);
  CHECK(lost.take(file(u"THE OTHERS", 2)));
  CHECK_FALSE(lost.take(file(std::u16string(1, u'\1'))));
  CHECK(lost.take(file(std::u16string(1, static_cast<char16_t>(LostRecords::kMost + 10)))));
  for (std::size_t n = 0; n < 400; ++n)
    lost.add(file(std::u16string(4096, static_cast<char16_t>(n + 1)), 3), {});
  CHECK(lost.waiting() < 300);
}

TEST_CASE("records caused by one peer do not evict records of others") {
  // Clients 2 to 999 are one peer's.
  LostWrites lost(7,
                  [](const LostWrites::Client& client) { return client[0] == std::byte{1} ? "" : "rogue"; });
  for (char16_t n = 1; n <= 8; ++n) lost.add(file(std::u16string(1, n)), {});
  SECTION("in many files of as many clients") {
    for (unsigned n = 0; n < 2 * LostRecords::kMost; ++n)
      lost.add(file(std::u16string(1, static_cast<char16_t>(n + 1)), 2 + n % 200 + (n % 4) * 256), {});
    CHECK(lost.waiting() == LostRecords::kMost);
  }
  SECTION("in few files with long names") {
    for (unsigned n = 0; n < 50; ++n)
      lost.add(file(std::u16string(30'000, static_cast<char16_t>(n + 1)), 2 + n), {});
    CHECK(lost.waiting() < 30);
  }
  for (char16_t n = 1; n <= 8; ++n) CHECK(lost.take(file(std::u16string(1, n))));
}

TEST_CASE("each loss and each report is counted and passed to the journal once") {
  LostWrites lost;
  Heard heard;
  lost.events().set_journal(&heard);
  lost.refused(file(u"A"), {0, 10}, kDiskFull);
  lost.told_late(file(u"A"));
  CHECK(lost.has(file(u"A"), Use::writes));  // a program may log in again and go on
  lost.forget(file(u"A"));
  lost.told_late(file(u"A"), Told::reset);  // the file was emptied before the report
  lost.refused(file(u"A"), {0, 10}, kDiskFull);
  lost.add(file(u"A"), {.cause = Cause::refused});  // not told before the connection was reset
  lost.add(file(u"B"), {.cause = Cause::server_gone, .ranges = {{0, 10}, {10, 20}}});
  CHECK(lost.take(file(u"A")));
  CHECK(lost.take(file(u"B"), Use::reads));
  CHECK(heard.said == std::vector<std::string>{"lost refused", "reported late_error refused 0-10",
                                               "ended replaced", "reported reset refused", "lost refused",
                                               "lost server_gone", "reported next_open refused",
                                               "reported next_open server_gone 0-20"});
  CHECK(heard.changes == 7);
  const auto records = lost.records();
  REQUIRE(records.size() == 1);
  CHECK(records.front().loss.ranges == std::vector<Interval>{{0, 20}});
  CHECK(lost.events().counters().lost[0] == 2);
  CHECK(lost.events().counters().reported == std::array<std::uint64_t, 3>{1, 2, 1});
}

TEST_CASE("a renamed file takes its record along, and other clients' records stay") {
  LostWrites lost;
  lost.add(file(u"A"), {.cause = Cause::flow_cut, .ranges = {{0, 10}}});
  lost.add(file(u"B"), {.cause = Cause::server_gone});
  lost.add(file(u"B", 2), {.cause = Cause::server_gone});
  lost.moved(file(u"A"), file(u"A"));
  CHECK(lost.waiting() == 3);
  lost.moved(file(u"A"), file(u"B"));
  CHECK(lost.waiting() == 2);
  CHECK_FALSE(lost.has(file(u"A"), Use::writes));
  CHECK(lost.records().front().loss.ranges == std::vector<Interval>{{0, 10}});
  lost.moved(file(u"C"), file(u"B"));
  CHECK(lost.waiting() == 1);
  CHECK(lost.has(file(u"B", 2), Use::writes));
}

TEST_CASE("the records below a folder that is renamed follow it") {
  LostWrites lost;
  for (const auto* path : {u"D\\A", u"D\\E\\B", u"DA", u"C"}) lost.add(file(path), {});
  const std::size_t bytes = lost.name_bytes();
  lost.moved(file(u"D"), file(u"NEW"));
  CHECK(lost.waiting() == 4);
  CHECK(lost.name_bytes() == bytes + 2 * 2 * sizeof(char16_t));
  CHECK(lost.take(file(u"NEW\\A")));
  CHECK(lost.take(file(u"NEW\\E\\B")));
  CHECK(lost.take(file(u"DA")));
  CHECK(lost.take(file(u"C")));
  CHECK(lost.name_bytes() == 0);
}

TEST_CASE("a client's flows may lose writes while one of them is alive, a file is marked or on record") {
  const auto lost = std::make_shared<LostWrites>();
  const LostWrites::Ends ends = file(u"A").ends;
  CHECK_FALSE(lost->may_lose(ends));
  {
    OpenMarks marks(lost);
    marks.mark(twin::OpenKey{}, file(u"A"));
    CHECK(lost->may_lose(ends));
    CHECK_FALSE(lost->may_lose(file(u"A", 2).ends));
  }
  CHECK_FALSE(lost->may_lose(ends));
  lost->live().enter(ends, nullptr);
  CHECK(lost->may_lose(ends));
  lost->live().leave(ends, nullptr);
  CHECK_FALSE(lost->may_lose(ends));
  lost->add(file(u"A"), {});
  CHECK(lost->may_lose(ends));
}

TEST_CASE(
    "all records of a client can be told by resets: of each connection for two minutes, reported once") {
  LostWrites lost;
  link::TimePoint now{};
  lost.set_clock([&] { return now; });
  for (const auto* path : {u"A", u"B"}) lost.add(file(path), {});
  lost.add(file(u"A", 2), {});
  const LostWrites::Ends ends = file(u"X").ends;
  const auto by_reset = [&] {
    return lost.events().counters().reported[static_cast<std::size_t>(Told::reset)];
  };
  for (const int seconds : {0, 1, 118}) {
    now += std::chrono::seconds(seconds);
    CHECK(lost.told_by_reset(ends));
    CHECK(lost.waiting() == 3);
    CHECK(by_reset() == 2);
  }
  SECTION("an answer tells it before") {
    CHECK(lost.take(file(u"A")));
    CHECK(lost.take(file(u"B")));
    CHECK_FALSE(lost.told_by_reset(ends));
  }
  SECTION("lost again: from the beginning") {
    lost.add(file(u"A"), {});
    CHECK(lost.told_by_reset(ends));
    CHECK(by_reset() == 3);
    now += std::chrono::seconds(1);
    CHECK(lost.told_by_reset(ends));
    CHECK(lost.has_record(file(u"A")));
    CHECK_FALSE(lost.has_record(file(u"B")));
  }
  SECTION("the time is over") {
    now += std::chrono::seconds(1);
    CHECK_FALSE(lost.has(file(u"A"), Use::writes));
    CHECK_FALSE(lost.has_record(file(u"A")));
    CHECK_FALSE(lost.any(ends));
    CHECK(lost.all_ends() == std::vector{file(u"A", 2).ends});
    CHECK_FALSE(lost.take(file(u"A")));
    CHECK_FALSE(lost.told_by_reset(ends));
    CHECK(by_reset() == 2);
  }
  CHECK(lost.waiting() <= 2);
  CHECK(lost.has_record(file(u"A", 2)));
}

TEST_CASE("a file whose name differs only in its spelling is told, and may be another: nothing of it ends") {
  LostWrites lost;
  const auto spelled = [](std::u16string spelling) {
    LostWrites::File it = file(u"DATA");
    it.spelled = std::move(spelling);
    return it;
  };
  const LostWrites::File data = spelled(u"data"), other = spelled(u"DATA");
  lost.add(data, {.cause = Cause::server_gone});
  SECTION("deleted or replaced") {
    CHECK_FALSE(lost.has(other, Use::replaces));
    lost.forget(other);
    CHECK(lost.waiting() == 1);
    lost.forget(data);
    CHECK(lost.waiting() == 0);
  }
  SECTION("told once by each spelling") {
    CHECK(lost.take(other, Use::reads));
    CHECK_FALSE(lost.take(other, Use::reads));
    CHECK(lost.take(other));
    CHECK_FALSE(lost.take(other));
    CHECK_FALSE(lost.take(other, Use::reads));
    CHECK(lost.take(data, Use::reads));
    CHECK(lost.take(data));
    CHECK(lost.waiting() == 0);
  }
  SECTION("told by a reset, once") {
    lost.told_by_reset(other);
    lost.told_by_reset(other);
    CHECK(lost.events().counters().reported[static_cast<std::size_t>(Told::reset)] == 1);
    CHECK_FALSE(lost.has(other, Use::writes));
    CHECK(lost.has(data, Use::writes));
  }
  SECTION("both have lost writes") {
    lost.add(other, {.cause = Cause::server_gone});
    CHECK(lost.waiting() == 2);
    CHECK(lost.take(other));
    CHECK(lost.waiting() == 1);
    CHECK(lost.take(data));
    CHECK(lost.waiting() == 0);
  }
  SECTION("renamed: it is not known which of them") {
    lost.moved(other, spelled(u"data"));  // only in its spelling
    CHECK(lost.waiting() == 1);
    lost.moved(other, file(u"X"));
    CHECK(lost.has(file(u"X"), Use::writes));
    CHECK(lost.has(data, Use::writes));
    lost.moved(data, file(u"Y"));
    CHECK_FALSE(lost.has(data, Use::writes));
    CHECK(lost.take(file(u"X")));
    CHECK(lost.take(file(u"Y")));
  }
  SECTION("renamed to another spelling") {
    lost.moved(data, other);
    CHECK(lost.waiting() == 1);
    lost.forget(other);
    CHECK(lost.waiting() == 0);
  }
  SECTION("where the spelling is not known it is the same file") {
    lost.forget(file(u"DATA"));
    CHECK(lost.waiting() == 0);
  }
  if (lost.waiting() == 0) CHECK(lost.name_bytes() == 0);
}

}  // namespace longhaul::promises
