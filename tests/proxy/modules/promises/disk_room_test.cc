// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/promises/disk_room.h"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using longhaul::promises::DiskQuestions;
using longhaul::promises::DiskRoom;
using longhaul::promises::DiskTree;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr DiskTree kTree{.session = 5, .tree = 1};

}  // namespace

TEST_CASE("nothing is promised for a disk with unknown free space") {
  DiskRoom room;
  CHECK_FALSE(room.has_room(kTree, 1));
  room.told(kTree, 100 * kMiB, 0);
  CHECK(room.has_room(kTree, kMiB));
  CHECK_FALSE(room.has_room(DiskTree{.session = 6}, 1));
}

TEST_CASE(
    "promises use up the free space that the server reported, and a new report counts from its request") {
  DiskRoom room;
  room.told(kTree, 8 * kMiB, 0);
  std::uint64_t promised = 0;
  for (; room.has_room(kTree, kMiB / 2); promised += kMiB / 2) room.promised(kTree, kMiB / 2);
  CHECK(promised == 7 * kMiB);           // the last one is kept back
  room.told(kTree, 4 * kMiB, 4 * kMiB);  // asked after four were written; three more are on their way
  CHECK_FALSE(room.has_room(kTree, 1));
  room.told(kTree, 100 * kMiB, 7 * kMiB);  // files were deleted
  CHECK(room.has_room(kTree, 80 * kMiB));
}

TEST_CASE("a disk with less than the reserve accepts no promise, and no sum overflows") {
  DiskRoom room;
  room.told(kTree, kMiB - 1, 0);
  CHECK_FALSE(room.has_room(kTree, 0));
  room.told(kTree, ~std::uint64_t{0}, ~std::uint64_t{0});
  CHECK(room.has_room(kTree, 1));
  CHECK_FALSE(room.has_room(kTree, ~std::uint64_t{0}));
}

TEST_CASE("the server is asked once at a time, and again when an eighth is used or the answer is old") {
  DiskQuestions questions;
  const auto start = longhaul::link::TimePoint{} + 1h;
  CHECK(questions.ask_for(kTree, start));
  CHECK_FALSE(questions.ask_for(kTree, start + 1h));  // not answered yet
  questions.written(kTree, kMiB);
  const auto told = questions.answered(kTree, 16 * kMiB);
  REQUIRE(told);
  CHECK(told->available_bytes == 16 * kMiB);
  CHECK(told->counted_bytes == 0);
  CHECK_FALSE(questions.ask_for(kTree, start + 1s));
  questions.written(kTree, kMiB + 1);
  CHECK(questions.ask_for(kTree, start + 1s));
  CHECK(questions.answered(kTree, 14 * kMiB)->counted_bytes == 2 * kMiB + 1);
  CHECK_FALSE(questions.ask_for(kTree, start + 2s));
  CHECK(questions.ask_for(kTree, start + 7s));
}

TEST_CASE("a server that never answers is not asked again") {
  DiskQuestions questions;
  const auto start = longhaul::link::TimePoint{} + 1h;
  CHECK(questions.ask_for(kTree, start));
  const auto told = questions.answered(kTree, std::nullopt);
  REQUIRE(told);  // so that no request waits for it
  CHECK(told->available_bytes == 0);
  CHECK_FALSE(questions.ask_for(kTree, start + 1h));
  CHECK_FALSE(questions.answered(DiskTree{.session = 9}, 1));  // never asked for
}

TEST_CASE("a question that was never sent is asked again") {
  DiskQuestions questions;
  const auto start = longhaul::link::TimePoint{} + 1h;
  CHECK(questions.ask_for(kTree, start));
  questions.not_asked(kTree);
  CHECK(questions.ask_for(kTree, start));
}
