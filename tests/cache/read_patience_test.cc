// SPDX-License-Identifier: Apache-2.0
// How long a disk is waited for: a read that hangs holds no other up, and a disk that is often late has
// pauses that grow up to a limit.
#include "cache/read_patience.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

namespace longhaul::cache {
namespace {

using namespace std::chrono_literals;

struct Disk {
  ReadPatience patience;
  ReadPatience::TimePoint now{1h};
  // False: it is not asked.
  bool read(ReadPatience::Duration takes) {
    if (!patience.may_read(now)) return false;
    const auto number = patience.begin(now);
    now += takes;
    patience.end(now, number);
    return true;
  }
};

TEST_CASE("while a read hangs, no other is made; when it returns, others are") {
  Disk disk;
  const auto hanging = disk.patience.begin(disk.now);
  disk.now += ReadPatience::kLate - 1ms;
  CHECK(disk.read(0ms));
  disk.now += 1ms;
  for (int i = 0; i < 5; ++i) CHECK_FALSE(disk.patience.may_read(disk.now += 1h));
  CHECK(disk.patience.counters(disk.now).late == 1);
  CHECK(disk.patience.counters(disk.now).skipped == 5);
  CHECK_FALSE(disk.patience.is_patient(disk.now));
  disk.patience.end(disk.now, hanging);
  CHECK(disk.patience.is_patient(disk.now));
  CHECK(disk.patience.counters(disk.now).late == 1);
  CHECK(disk.read(1ms));
}

TEST_CASE(
    "a disk that is late three times in a row has pauses that double up to a limit, and one read in time "
    "ends them") {
  Disk disk;
  const auto is_late = [&] { return disk.read(ReadPatience::kLate); };
  CHECK((is_late() && is_late() && disk.read(1ms)));  // not in a row
  CHECK((is_late() && is_late() && is_late()));
  ReadPatience::Duration pause = ReadPatience::kFirstPause;
  for (int i = 0; i < 10; ++i) {
    disk.now += pause - 1ms;
    CHECK_FALSE(disk.read(1ms));
    disk.now += 1ms;
    CHECK(is_late());
    pause = std::min(2 * pause, ReadPatience::kLongestPause);
  }
  CHECK(pause == ReadPatience::kLongestPause);
  disk.now += pause;
  CHECK(disk.read(1ms));
  CHECK((is_late() && is_late() && is_late()));
  disk.now += ReadPatience::kFirstPause;
  CHECK(disk.patience.is_patient(disk.now));
}

TEST_CASE("reads that were begun together and are all late make one pause") {
  Disk disk;
  std::vector<ReadPatience::Number> reads;
  for (int i = 0; i < 50; ++i) reads.push_back(disk.patience.begin(disk.now));
  disk.now += 10s;
  for (const auto number : reads) disk.patience.end(disk.now, number);
  CHECK(disk.patience.counters(disk.now).late == 50);
  disk.now += ReadPatience::kFirstPause;
  CHECK(disk.patience.is_patient(disk.now));
}

TEST_CASE("a read that was not made after all is not waited for") {
  Disk disk;
  disk.patience.forget(disk.patience.begin(disk.now));
  disk.now += 1h;
  CHECK(disk.patience.is_patient(disk.now));
  CHECK(disk.patience.counters(disk.now).late == 0);
}

}  // namespace
}  // namespace longhaul::cache
