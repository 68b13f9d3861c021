// SPDX-License-Identifier: Apache-2.0
#include "tools/wan/managed_queue.h"

#include <catch2/catch.hpp>

using namespace longhaul::wan;
using namespace std::chrono_literals;

namespace {

constexpr TimePoint kBegun{1h};
constexpr ManagedQueue::Line kShortQueue{.rate_bits = 1'000'000, .limit_bytes = 3'000};
constexpr AqmConfig kCodel{.kind = AqmConfig::Kind::codel};
constexpr AqmConfig kFair{.kind = AqmConfig::Kind::fq_codel};

QueuedPacket queued(std::uint64_t number, bool lost = false) {
  return {
      .number = number, .id = static_cast<PacketId>(number), .bytes = 1'000, .arrived = kBegun, .lost = lost};
}

}  // namespace

TEST_CASE("a queue without management keeps nothing") {
  ManagedQueue queue(1);
  CHECK_FALSE(queue.is_on());
  CHECK(queue.empty());
  CHECK(queue.bytes() == 0);
  CHECK(queue.use(nullptr, kShortQueue, kBegun).empty());
  CHECK_FALSE(queue.poll_dropped());
}

TEST_CASE("a packet that does not fit is dropped, and its owner hears of it at once") {
  ManagedQueue queue(1);
  queue.use(&kCodel, kShortQueue, kBegun);
  for (std::uint64_t number = 0; number < 3; ++number) CHECK(queue.enqueue(queued(number), kBegun).taken);
  const auto fourth = queue.enqueue(queued(3), kBegun + 1ms);
  CHECK_FALSE(fourth.taken);
  CHECK(fourth.drops.all == 1);
  CHECK(fourth.drops.early == 0);
  CHECK(queue.size() == 3);
  CHECK(queue.bytes() == 3'000);
  CHECK_FALSE(queue.has_dropped());
}

TEST_CASE("packets go on the line in their order, the first one not before it came") {
  ManagedQueue queue(1);
  queue.use(&kCodel, kShortQueue, kBegun);
  queue.enqueue(queued(0), kBegun);
  queue.enqueue(queued(1), kBegun);
  CHECK(queue.start(kBegun - 1s) == kBegun);
  CHECK(queue.start(kBegun + 1s) == kBegun + 1s);
  CHECK(queue.dequeue(kBegun).packet->number == 0);
  CHECK(queue.dequeue(kBegun).packet->number == 1);
  CHECK(queue.empty());
}

TEST_CASE("what a long delay has dropped is told to the owners that still know of it") {
  ManagedQueue queue(1);
  queue.use(&kCodel, {.rate_bits = 1'000'000, .limit_bytes = 1'000'000}, kBegun);
  for (std::uint64_t number = 0; number < 500; ++number)
    queue.enqueue(queued(number, number % 2 == 1), kBegun);
  std::size_t dropped = 0;
  for (TimePoint now = kBegun + 1s; !queue.empty(); now += 8ms) {
    const auto next = queue.dequeue(now);
    CHECK(next.drops.all == next.drops.early);
    dropped += next.drops.all;
  }
  std::size_t told = 0;
  while (const auto gone = queue.poll_dropped()) {
    CHECK_FALSE(gone->lost);
    ++told;
  }
  CHECK(told > 0);
  CHECK(told < dropped);
}

TEST_CASE("packets that wait survive a change of the management, and leave with its end") {
  ManagedQueue queue(1);
  queue.use(&kCodel, kShortQueue, kBegun);
  for (std::uint64_t number = 0; number < 3; ++number) queue.enqueue(queued(number), kBegun);
  ManagedQueue::Line shorter = kShortQueue;
  shorter.limit_bytes = 1'000;
  CHECK(queue.use(&kCodel, shorter, kBegun).empty());
  CHECK(queue.size() == 3);
  CHECK(queue.use(&kFair, shorter, kBegun).empty());
  CHECK(queue.size() == 3);
  const auto left = queue.use(nullptr, shorter, kBegun);
  REQUIRE(left.size() == 3);
  for (std::uint64_t number = 0; number < 3; ++number) CHECK(left[number].number == number);
  CHECK(queue.empty());
  CHECK_FALSE(queue.is_on());
}
