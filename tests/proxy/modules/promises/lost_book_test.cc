// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/promises/lost_book.h"

#include <xxhash.h>

#include <catch2/catch.hpp>
#include <cstdio>

namespace longhaul::promises {
namespace {

std::vector<LostWrites::Record> some_records() {
  LostWrites::Record first{.file = {.ends = {.client = {std::byte{0xFE}, std::byte{1}},
                                             .server = {std::byte{2}},
                                             .server_port = 445},
                                    .share = u"DATA",
                                    .path = u"DIR\\\x4E2D\xD83D\xDE00 \n.TXT",
                                    .spelled = u"Dir\\\x4E2D\xD83D\xDE00 \n.txt"},
                           .loss = {.cause = Cause::server_gone, .ranges = {{0, 10}, {1ull << 62, ~0ull}}}};
  LostWrites::Record second{.file = {.ends = first.file.ends},
                            .loss = {.cause = Cause::near_vanished, .near = ~0ull},
                            .reader_told = true};
  return {first, second};
}

}  // namespace

TEST_CASE("a new daemon reads the lost writes that the previous one wrote") {
  const auto read = parse_lost_book(lost_book_text(some_records()));
  REQUIRE(read);
  REQUIRE(read->size() == 2);
  const auto expected = some_records();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK((*read)[i].file == expected[i].file);
    CHECK((*read)[i].file.spelled == expected[i].file.spelled);
    CHECK((*read)[i].loss.cause == expected[i].loss.cause);
    CHECK((*read)[i].loss.ranges == expected[i].loss.ranges);
    CHECK((*read)[i].loss.near == expected[i].loss.near);
    CHECK((*read)[i].reader_told == expected[i].reader_told);
  }
  CHECK(parse_lost_book(lost_book_text({}))->empty());
}

TEST_CASE("a new daemon reads the lost writes of one that did not spell their names") {
  std::string text =
      "longhaul lost-writes 1\n"
      "00000000000000000000ffff0a000001 00000000000000000000ffff0a000002 445 1 0 0 0-4096 -00440041 "
      "-00410042\n";
  char sum[32];
  std::snprintf(sum, sizeof sum, "sum %016llx\n",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  const auto read = parse_lost_book(text + sum);
  REQUIRE(read);
  REQUIRE(read->size() == 1);
  CHECK(read->front().file.path == u"AB");
  CHECK(read->front().file.spelled.empty());
}

TEST_CASE("a book of lost writes that is truncated or changed anywhere is rejected") {
  const std::string text = lost_book_text(some_records());
  for (std::size_t size = 0; size < text.size(); ++size) CHECK_FALSE(parse_lost_book(text.substr(0, size)));
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = static_cast<char>(other[i] ^ 1);
    CHECK_FALSE(parse_lost_book(other));
  }
}

TEST_CASE("the maximum of lost writes can be written and read back") {
  LostWrites lost;
  for (std::size_t n = 0; n < LostRecords::kMost; ++n) {
    LostWrites::Loss loss;
    for (std::uint64_t i = 0; i < Loss::kMostRanges; ++i)
      loss.ranges.push_back({~0ull - 100 + 2 * i, ~0ull - 99 + 2 * i});
    lost.add({.share = u"S", .path = std::u16string(500, static_cast<char16_t>(n + 1))}, loss);
  }
  REQUIRE(lost.waiting() == LostRecords::kMost);
  const std::string text = lost_book_text(lost.records());
  CHECK(text.size() <= kMostLostBookBytes);
  CHECK(parse_lost_book(text)->size() == LostRecords::kMost);
}

}  // namespace longhaul::promises
