// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/promises/lost_book.h"

#include <catch2/catch.hpp>

namespace longhaul::promises {
namespace {

std::vector<LostWrites::Record> some_records() {
  LostWrites::Record first{.file = {.ends = {.client = {std::byte{0xFE}, std::byte{1}},
                                             .server = {std::byte{2}},
                                             .server_port = 445},
                                    .share = u"DATA",
                                    .path = u"DIR\\\x4E2D\xD83D\xDE00 \n.TXT"},
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
    CHECK((*read)[i].loss.cause == expected[i].loss.cause);
    CHECK((*read)[i].loss.ranges == expected[i].loss.ranges);
    CHECK((*read)[i].loss.near == expected[i].loss.near);
    CHECK((*read)[i].reader_told == expected[i].reader_told);
  }
  CHECK(parse_lost_book(lost_book_text({}))->empty());
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
  for (std::size_t n = 0; n < LostWrites::kMost; ++n) {
    LostWrites::Loss loss;
    for (std::uint64_t i = 0; i < LostWrites::kMostRanges; ++i)
      loss.ranges.push_back({~0ull - 100 + 2 * i, ~0ull - 99 + 2 * i});
    lost.add({.share = u"S", .path = std::u16string(500, static_cast<char16_t>(n + 1))}, loss);
  }
  REQUIRE(lost.waiting() == LostWrites::kMost);
  const std::string text = lost_book_text(lost.records());
  CHECK(text.size() <= kMostLostBookBytes);
  CHECK(parse_lost_book(text)->size() == LostWrites::kMost);
}

}  // namespace longhaul::promises
