// SPDX-License-Identifier: Apache-2.0
#include "tools/wan/propagation.h"

#include <catch2/catch.hpp>

using namespace longhaul::wan;
using namespace std::chrono_literals;

namespace {

constexpr TimePoint kSent{1h};

Propagation::Packet numbered(std::uint64_t number, Duration after) {
  return {.at = kSent + after, .number = number, .bytes = 100};
}

}  // namespace

TEST_CASE("packets come out in the order of sending, even if a later one would arrive earlier") {
  Propagation travelling;
  CHECK_FALSE(travelling.next());
  travelling.send(numbered(0, 30ms));
  travelling.send(numbered(1, 10ms));
  CHECK(travelling.size() == 2);
  CHECK(travelling.next() == kSent + 30ms);
  CHECK(travelling.in_order(kSent) == kSent + 30ms);
  CHECK_FALSE(travelling.poll(kSent + 29ms));
  for (std::uint64_t number = 0; number < 2; ++number) {
    const auto out = travelling.poll(kSent + 30ms);
    REQUIRE(out);
    CHECK(out->packet.number == number);
    CHECK(out->packet.at == kSent + 30ms);
    CHECK_FALSE(out->is_late);
  }
  CHECK(travelling.size() == 0);
}

TEST_CASE("a packet that is held back is passed by others, which are in time") {
  Propagation travelling;
  travelling.hold_back(numbered(0, 10ms), 5ms);
  travelling.send(numbered(1, 12ms));
  travelling.send(numbered(2, 15ms));
  CHECK(travelling.next() == kSent + 12ms);
  CHECK(travelling.poll(kSent + 20ms)->packet.number == 1);
  const auto held = travelling.poll(kSent + 20ms);  // of two at the same time, the one that was sent first
  CHECK(held->packet.number == 0);
  CHECK(held->packet.at == kSent + 15ms);
  CHECK(held->is_late);
  CHECK(travelling.next() == kSent + 15ms);
  const auto last = travelling.poll(kSent + 20ms);
  CHECK(last->packet.number == 2);
  CHECK_FALSE(last->is_late);
}
