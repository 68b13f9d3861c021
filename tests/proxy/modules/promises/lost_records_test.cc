// SPDX-License-Identifier: Apache-2.0
// What is kept of lost writes, for whom, and which record goes when there are too many.
#include "proxy/modules/promises/lost_records.h"

#include <catch2/catch.hpp>
#include <string>

namespace longhaul::promises {
namespace {

using namespace std::chrono_literals;

LostFile file_of_record(std::u16string path, unsigned client = 1, std::u16string spelled = {}) {
  return {.ends = {.client = {std::byte(client), std::byte(client >> 8)},
                   .server = {std::byte(1)},
                   .server_port = 445},
          .share = u"SHARE",
          .path = std::move(path),
          .spelled = std::move(spelled)};
}
LostRecord record(std::u16string path, unsigned client = 1, std::u16string spelled = {}) {
  return {.file = file_of_record(std::move(path), client, std::move(spelled)), .loss = {}};
}
std::u16string numbered(std::size_t n) {
  const std::string digits = std::to_string(n);
  return {digits.begin(), digits.end()};
}
// Clients from 100 on are those of a peer.
std::string owner_of(const LostRecords::Client& client) {
  return std::to_integer<unsigned>(client[0]) >= 100 ? "peer" : "";
}
constexpr auto kAny = [](const LostRecord&) { return true; };

}  // namespace

TEST_CASE("lost records: a file is found by exactly its name, and its client's oldest comes first") {
  LostRecords records(owner_of);
  records.insert(record(u"A", 1, u"a"));
  records.insert(record(u"B"));
  records.insert(record(u"A", 2));
  CHECK(records.size() == 3);
  CHECK(records.name_bytes() == (3 * 5 + 3 + 1) * sizeof(char16_t));
  CHECK(records.find(file_of_record(u"A", 1, u"a")));
  CHECK_FALSE(records.find(file_of_record(u"A", 1, u"A")));
  CHECK_FALSE(records.find(file_of_record(u"A", 3)));
  CHECK(records.of(file_of_record(u"", 3).ends.client) == nullptr);
  const auto& of = *records.of(file_of_record(u"", 1).ends.client);
  REQUIRE(of.size() == 2);
  CHECK(of.front().file.path == u"A");
  CHECK(records.any(file_of_record(u"", 2).ends.client, kAny));
  CHECK_FALSE(records.any(file_of_record(u"", 3).ends.client, kAny));
  std::size_t visited = 0;
  records.for_each([&](const LostRecord&) { ++visited; });
  CHECK(visited == 3);
  CHECK(records.all().size() == 3);
}

TEST_CASE("lost records: a second loss of a file adds its ranges to the record, under its latest cause") {
  LostRecords records(owner_of);
  LostRecord first = record(u"A", 1, u"a"), second = record(u"A");
  first.loss = {.cause = Cause::refused, .status = 5, .ranges = {{0, 10}}};
  second.loss = {.cause = Cause::link_lost, .ranges = {{20, 30}}};
  records.insert(first), records.insert(second);
  CHECK(records.size() == 1);
  const LostRecord* kept = records.find(file_of_record(u"A"));
  REQUIRE(kept);
  CHECK(kept->file.spelled == u"a");
  CHECK(kept->loss.cause == Cause::link_lost);
  CHECK(kept->loss.ranges.size() == 2);

  second.loss.ranges.clear();  // unknown: so is the whole
  records.insert(second);
  CHECK(records.find(file_of_record(u"A"))->loss.ranges.empty());
  second.loss.ranges = {{1, 2}};
  records.insert(second);
  CHECK(records.find(file_of_record(u"A"))->loss.ranges.empty());
}

TEST_CASE("lost records: removing and renaming keep the sizes") {
  LostRecords records(owner_of);
  records.insert(record(u"A")), records.insert(record(u"BB"));
  const auto client = file_of_record(u"").ends.client;
  records.rename(records.of(client)->front(), file_of_record(u"CCCC"));
  CHECK(records.find(file_of_record(u"CCCC")));
  CHECK(records.name_bytes() == (5 + 4 + 5 + 2) * sizeof(char16_t));
  const auto removed = records.remove_first(client, [](const auto& each) { return each.file.path == u"BB"; });
  REQUIRE(removed);
  CHECK(removed->file.path == u"BB");
  CHECK_FALSE(records.remove_first(client, [](const auto& each) { return each.file.path == u"BB"; }));
  CHECK(records.remove_first(client, kAny));
  CHECK(records.size() == 0);
  CHECK(records.name_bytes() == 0);
  CHECK(records.of(client) == nullptr);
  CHECK_FALSE(records.remove_first(client, kAny));
}

TEST_CASE(
    "lost records: with too many files, the owner with the most loses the oldest of its largest client") {
  LostRecords records(owner_of);
  for (unsigned n = 0; n < 5; ++n) records.insert(record(numbered(n), 1));
  for (unsigned n = 0; n < 5; ++n) records.insert(record(numbered(n), 100));
  for (std::size_t n = 0; records.size() < LostRecords::kMost; ++n) records.insert(record(numbered(n), 101));
  CHECK_FALSE(records.evict());
  records.insert(record(u"one more", 1));  // of this site, which has few
  const auto evicted = records.evict();
  REQUIRE(evicted);
  CHECK(evicted->file == file_of_record(u"0", 101));
  CHECK(records.size() == LostRecords::kMost);
  CHECK_FALSE(records.evict());
}

TEST_CASE(
    "lost records: with too long names, the owner with the longest loses them, not the one with the most "
    "files") {
  LostRecords records(owner_of);
  for (std::size_t n = 0; n < 100; ++n) records.insert(record(numbered(n), 1));
  const std::u16string is_long(LostRecords::kMostNameBytes / 8, u'x');
  for (std::size_t n = 0; n < 4; ++n) records.insert(record(is_long + numbered(n), 100));
  REQUIRE(records.name_bytes() > LostRecords::kMostNameBytes);
  const auto evicted = records.evict();
  REQUIRE(evicted);
  CHECK(evicted->file == file_of_record(is_long + u"0", 100));
  CHECK_FALSE(records.evict());
}

TEST_CASE("a lost record concerns its file, and its other spellings once each") {
  LostRecord lost = record(u"A", 1, u"a");
  const link::TimePoint now{};
  CHECK(lost.concerns(file_of_record(u"A", 1, u"a"), Use::attributes, now));
  CHECK_FALSE(lost.concerns(file_of_record(u"B"), Use::writes, now));
  const LostFile other = file_of_record(u"A", 1, u"A");
  CHECK(lost.concerns(other, Use::reads, now));
  CHECK_FALSE(lost.concerns(other, Use::replaces, now));  // another file, if the server tells them apart
  CHECK(lost.concerns(file_of_record(u"A", 1, u"a"), Use::replaces, now));
  lost.told_by(other, true);
  CHECK_FALSE(lost.concerns(other, Use::reads, now));
  CHECK(lost.concerns(other, Use::writes, now));
  lost.told_by(other, false);
  CHECK_FALSE(lost.concerns(other, Use::writes, now));
  CHECK(lost.told_by_others.size() == 1);
  for (std::size_t n = 0; n < 20; ++n) lost.told_by(file_of_record(u"A", 1, u"A" + numbered(n)), false);
  CHECK(lost.told_by_others.size() == 8);
  CHECK(lost.concerns(other, Use::writes, now));  // once more
}

TEST_CASE("a reader that was told is not told again, and nobody is when resets have told it long enough") {
  LostRecord lost = record(u"A");
  link::TimePoint now{};
  lost.reader_told = true;
  CHECK_FALSE(lost.concerns(file_of_record(u"A"), Use::reads, now));
  CHECK(lost.concerns(file_of_record(u"A"), Use::writes, now));
  lost.reset_at = now;
  CHECK(lost.concerns(file_of_record(u"A"), Use::writes, now + LostRecord::kResetsFor - 1s));
  CHECK_FALSE(lost.is_over(now + LostRecord::kResetsFor - 1s));
  CHECK(lost.is_over(now + LostRecord::kResetsFor));
  CHECK_FALSE(lost.concerns(file_of_record(u"A"), Use::writes, now + LostRecord::kResetsFor));
}

}  // namespace longhaul::promises
