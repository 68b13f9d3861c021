// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/ahead/read_ahead.h"

#include <catch2/catch.hpp>
#include <random>

using namespace longhaul;
using namespace longhaul::ahead;

namespace {

constexpr std::uint64_t KiB = 1024, MiB = 1024 * KiB;

// An OC-1 at 250 ms: 6.1 MB/s, 1.5 MB in a round trip.
const ReadAheadLimits kLong = limits_for(6.1e6, 0.25, 1 << 20);

IntervalSet fetched(ReadAhead& policy, const ReadAheadLimits& limits = kLong) {
  IntervalSet all;
  while (auto range = policy.next(limits)) {
    CHECK(range->size() <= limits.largest_read);
    CHECK(!all.overlaps(*range));
    all.add(*range);
  }
  return all;
}
std::uint64_t size_of(const IntervalSet& set) {
  std::uint64_t bytes = 0;
  for (const Interval& i : set.intervals()) bytes += i.size();
  return bytes;
}

}  // namespace

TEST_CASE("the read-ahead window follows rate and round trip within its bounds") {
  CHECK(limits_for(0, 0, 65536).window_bytes == 256 * KiB);
  CHECK(limits_for(6.1e6, 0.25, 65536).window_bytes == 2287500);
  CHECK(limits_for(1e9, 1, 65536).window_bytes == 16 * MiB);
  CHECK(limits_for(193e3, 0.1, 65536).first_bytes == 64 * KiB);
  CHECK(limits_for(6.1e6, 0.25, 65536).first_bytes == 1906250);
  CHECK(limits_for(1e9, 0.25, 65536).first_bytes == 4 << 20);
}

TEST_CASE("a small file is fetched whole with its open, a large one only at its beginning") {
  ReadAhead small;
  small.opened(100 * KiB, kLong);
  CHECK(fetched(small).intervals() == std::vector<Interval>{{0, 100 * KiB}});
  ReadAhead large;
  large.opened(100 * MiB, kLong);
  CHECK(fetched(large).intervals() == std::vector<Interval>{{0, kLong.first_bytes}});
  ReadAhead empty;
  empty.opened(0, kLong);
  CHECK(fetched(empty).empty());
}

TEST_CASE("a sequential reader is kept a window ahead, and nothing is fetched twice") {
  ReadAhead policy;
  policy.opened(20 * MiB, kLong);
  IntervalSet all = fetched(policy);
  for (std::uint64_t at = 0; at < 20 * MiB; at += 64 * KiB) {
    policy.on_read(at, 64 * KiB, kLong);
    const IntervalSet more = fetched(policy);
    for (const Interval& i : more.intervals()) {
      CHECK(!all.overlaps(i));
      all.add(i);
    }
    CHECK(policy.ahead_bytes() <= kLong.window_bytes + 64 * KiB);
    if (at > 8 * 64 * KiB && at < 15 * MiB) CHECK(policy.ahead_bytes() >= kLong.window_bytes / 2);
  }
  CHECK(all.intervals() == std::vector<Interval>{{0, 20 * MiB}});
}

TEST_CASE("alternating READs of two sizes, as the old redirector sends them, count as one sequence") {
  ReadAhead policy;
  std::uint64_t at = 0;
  for (int i = 0; i < 6; ++i) {
    policy.on_read(at, 61440, kLong), at += 61440;
    policy.on_read(at, 4096, kLong), at += 4096;
  }
  CHECK(size_of(fetched(policy)) >= kLong.window_bytes / 2);
}

TEST_CASE("a constant stride is recognised at the third READ") {
  ReadAhead policy;
  policy.on_read(MiB, 4 * KiB, kLong);
  CHECK(fetched(policy).empty());
  policy.on_read(2 * MiB, 4 * KiB, kLong);
  CHECK(fetched(policy).empty());
  policy.on_read(3 * MiB, 4 * KiB, kLong);
  IntervalSet ahead = fetched(policy);
  REQUIRE(!ahead.empty());
  CHECK(ahead.intervals().front() == Interval{4 * MiB, 4 * MiB + 4 * KiB});
  for (const Interval& i : ahead.intervals()) CHECK(i.begin % MiB == 0);
}

TEST_CASE("a client that reads a large file backwards or at random gets nothing ahead") {
  ReadAhead backwards;
  for (std::uint64_t at = 500 * MiB; at > 490 * MiB; at -= 64 * KiB) {
    backwards.on_read(at, 64 * KiB, kLong);
    CHECK(fetched(backwards).empty());
  }
  ReadAhead random;
  random.sized(1000 * MiB);
  std::uint64_t at = 1;
  for (int i = 0; i < 100; ++i) {
    at = at * 6364136223846793005ull + 1442695040888963407ull;
    random.on_read((at >> 34) % (1000 * MiB), 4 * KiB, kLong);
    CHECK(size_of(fetched(random)) <= 64 * KiB);
  }
}

TEST_CASE("a document read at random is fetched whole if the line carries it within two seconds") {
  ReadAhead document;
  document.sized(5 * MiB);
  for (std::uint64_t at : {3 * MiB, 1 * MiB, 4 * MiB, 2 * MiB}) document.on_read(at + 512, 512, kLong);
  CHECK(size_of(fetched(document)) >= 5 * MiB - 64 * KiB);
}

TEST_CASE("a client that reads the end of a file gets the part before it, once") {
  ReadAhead document;
  document.opened(50 * MiB, kLong);
  fetched(document);  // its first blocks
  document.on_read(50 * MiB - 1000, 1000, kLong);
  CHECK(fetched(document).intervals() == std::vector<Interval>{{50 * MiB - 64 * KiB, 50 * MiB - 1000}});
  document.on_read(50 * MiB - 9000, 500, kLong);
  CHECK(fetched(document).empty());
}

TEST_CASE("a document read in pieces in any order, with repetitions, is fetched once") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    ReadAhead document;
    document.opened(5 * MiB, kLong);
    std::uint64_t fetched_bytes = size_of(fetched(document));
    for (int i = 0; i < 2000; ++i) {
      document.on_read(random() % 400 * (5 * MiB / 400), 5 * MiB / 400, kLong);
      fetched_bytes += size_of(fetched(document));
    }
    CHECK(fetched_bytes <= 5 * MiB);
  }
}

TEST_CASE("two readers of one file are both followed") {
  ReadAhead policy;
  policy.sized(200 * MiB);
  IntervalSet all;
  for (std::uint64_t i = 0; i < 4; ++i) {
    policy.on_read(50 * MiB + i * 64 * KiB, 64 * KiB, kLong);
    policy.on_read(150 * MiB + i * 64 * KiB, 64 * KiB, kLong);
  }
  all = fetched(policy);
  CHECK(all.contains(50 * MiB + MiB));
  CHECK(all.contains(150 * MiB + MiB));
}

TEST_CASE("nothing is fetched behind the end, nor after a drop until the client reads again") {
  ReadAhead policy;
  policy.on_read(0, 64 * KiB, kLong);
  policy.on_end_of_file(100 * KiB);
  CHECK(fetched(policy).intervals() == std::vector<Interval>{{64 * KiB, 100 * KiB}});
  policy.forget_fetched();
  CHECK(fetched(policy).empty());
  CHECK(!policy.end_of_file());
  policy.on_read(64 * KiB, 64 * KiB, kLong);
  CHECK(!fetched(policy).empty());
}

TEST_CASE("data that the near half has dropped is fetched again with the data behind it") {
  ReadAhead policy;
  policy.opened(10 * MiB, kLong);
  for (std::uint64_t at = 0; at < 10 * MiB; at += 64 * KiB)
    policy.on_read(at, 64 * KiB, kLong), fetched(policy);
  policy.on_read(0, 64 * KiB, kLong);
  CHECK(fetched(policy).empty());
  policy.missed(11 * MiB);  // never fetched: nothing is lost
  CHECK(fetched(policy).empty());
  policy.missed(64 * KiB);
  policy.on_read(64 * KiB, 64 * KiB, kLong);
  CHECK(size_of(fetched(policy)) >= 256 * KiB);
}
