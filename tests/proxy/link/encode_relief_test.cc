// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/encode_relief.h"

#include <catch2/catch.hpp>

using namespace longhaul::link;
using namespace std::chrono_literals;

namespace {

struct Loop {
  // Time passes, of which the loop works `share`, and so many bytes a second are compressed.
  int run(Duration time, double share, double bytes_per_second) {
    int changes = 0;
    for (Duration passed{0}; passed < time; passed += 10ms) {
      now += 10ms;
      processor += std::chrono::duration_cast<Duration>(10ms * share);
      compressed += static_cast<std::uint64_t>(bytes_per_second / 100);
      changes += relief.update(now, processor, compressed);
    }
    return changes;
  }
  EncodeRelief relief;
  TimePoint now{std::chrono::hours(1)};
  Duration processor{0};
  std::uint64_t compressed = 0;
};

}  // namespace

TEST_CASE("a loop busy with compression lowers the level step by step, and raises it when it has time") {
  Loop loop;
  loop.run(1s, 0.5, 100e6);
  CHECK(loop.relief.steps() == 0);
  loop.run(400ms, 1.0, 100e6);
  CHECK(loop.relief.steps() == 1);
  loop.run(5s, 1.0, 100e6);
  CHECK(loop.relief.steps() == EncodeRelief::kMostSteps);
  loop.run(1s, 0.8, 100e6);
  CHECK(loop.relief.steps() == EncodeRelief::kMostSteps);
  loop.run(600s, 0.3, 100e6);
  CHECK(loop.relief.steps() == 0);
}

TEST_CASE("a loop busy with other work keeps the compression level that suits the line") {
  Loop loop;
  loop.run(5s, 1.0, 1e6);
  CHECK(loop.relief.steps() == 0);
}

TEST_CASE("a loop that is busy only at a high level does not oscillate") {
  Loop loop;
  int changes = 0;
  for (int second = 0; second < 100; ++second)
    changes += loop.run(1s, loop.relief.steps() == 0 ? 1.0 : 0.6, 100e6);
  CHECK(changes < 30);
}

TEST_CASE("after a long silence the level is again that of the line") {
  Loop loop;
  loop.run(2s, 1.0, 100e6);
  CHECK(loop.relief.steps() > 0);
  loop.now += 10s;
  CHECK(loop.relief.update(loop.now, loop.processor, loop.compressed));
  CHECK(loop.relief.steps() == 0);
}
