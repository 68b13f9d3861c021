// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/ahead/learnt_limits.h"

#include <catch2/catch.hpp>

namespace longhaul::ahead {
namespace {

constexpr ReadAheadLimits kFastLine{.first_bytes = 64 << 20, .scattered_bytes = 64 << 20};
constexpr LearntLimits::Closed kUnread{.was_pushed = true, .unread_bytes = 1 << 20, .size = 1 << 20};

}  // namespace

TEST_CASE("first blocks shrink while clients do not read them, and grow when they do") {
  LearntLimits learnt;
  const std::uint64_t begin = learnt.reduced(kFastLine).first_bytes;
  learnt.closed(kUnread);
  CHECK(learnt.reduced(kFastLine).first_bytes == begin / 2);
  for (int n = 0; n < 20; ++n) learnt.closed(kUnread);
  CHECK(learnt.reduced(kFastLine).first_bytes == 64 << 10);
  learnt.closed({.was_pushed = true, .unread_bytes = 0, .size = 1 << 20});
  CHECK(learnt.reduced(kFastLine).first_bytes == 128 << 10);
  for (int n = 0; n < 20; ++n) learnt.closed({.was_pushed = true, .size = 1 << 20});
  CHECK(learnt.reduced(kFastLine).first_bytes == 4 << 20);
}

TEST_CASE("a file of which nothing was pushed teaches nothing against first blocks") {
  LearntLimits learnt;
  const std::uint64_t begin = learnt.reduced(kFastLine).first_bytes;
  learnt.closed({.was_pushed = false, .unread_bytes = 1 << 20, .size = 1 << 20});
  CHECK(learnt.reduced(kFastLine).first_bytes > begin);
}

TEST_CASE("whole files for random READs depend on whether such files were read") {
  LearntLimits learnt;
  CHECK(learnt.reduced(kFastLine).scattered_bytes == 16 << 20);
  learnt.closed(kUnread);  // not such a file
  CHECK(learnt.reduced(kFastLine).scattered_bytes == 16 << 20);
  LearntLimits::Closed scattered = kUnread;
  scattered.is_scattered = true;
  learnt.closed(scattered);
  CHECK(learnt.reduced(kFastLine).scattered_bytes == 4 << 20);
  for (int n = 0; n < 9; ++n) learnt.closed(scattered);
  CHECK(learnt.reduced(kFastLine).scattered_bytes == 256 << 10);
  scattered.unread_bytes = scattered.size / 2;
  learnt.closed(scattered);
  CHECK(learnt.reduced(kFastLine).scattered_bytes == 1 << 20);
}

TEST_CASE("what was learnt never exceeds the limits of the line") {
  const LearntLimits learnt;
  const ReadAheadLimits slow{.first_bytes = 1000, .scattered_bytes = 0};
  CHECK(learnt.reduced(slow).first_bytes == 1000);
  CHECK(learnt.reduced(slow).scattered_bytes == 0);
  CHECK(learnt.reduced(slow).window_bytes == slow.window_bytes);
}

}  // namespace longhaul::ahead
