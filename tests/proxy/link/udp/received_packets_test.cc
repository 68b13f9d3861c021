// SPDX-License-Identifier: Apache-2.0
// The content of an ACK and when it is due, compared with a plain set of numbers.
#include "proxy/link/udp/received_packets.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "tests/proxy/link/numbers.h"
#include "tests/proxy/link/start.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {
std::vector<NumberRange> ranges_of(ReceivedPackets& received, TimePoint now = kStart) {
  const auto ack = received.make_ack(now);
  if (!ack) return {};
  return {ack->ranges.begin(), ack->ranges.end()};
}

// Past the packets that are acknowledged one by one.
ReceivedPackets after_the_first(PacketNumber& next) {
  ReceivedPackets received{kStart};
  for (next = 0_packet; next < 100_packet; ++next) received.on_packet(next, AckAsk::soon, kStart);
  (void)received.make_ack(kStart);
  return received;
}
}  // namespace

TEST_CASE("an ACK lists the same numbers as a plain set, newest first") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random{seed};
  ReceivedPackets received{kStart};
  std::set<PacketNumber> plain;
  for (PacketNumber number; number < 4000_packet; ++number) {
    const PacketNumber late = number > 30_packet && random() % 10 == 0 ? number - random() % 30 : number;
    if (random() % 20 == 0) continue;  // lost
    if (plain.insert(late).second) received.on_packet(late, AckAsk::soon, kStart);
    if (plain.insert(number).second) received.on_packet(number, AckAsk::soon, kStart);
    if (number.number() % 37 != 0) continue;
    const auto ranges = ranges_of(received);
    REQUIRE(ranges.front().last == *plain.rbegin());
    const NumberRange* above = nullptr;
    for (const auto& range : ranges) {
      for (PacketNumber n = range.first; n <= range.last; ++n) REQUIRE(plain.count(n) == 1);
      REQUIRE(plain.count(range.last + 1) == 0);
      if (above) {
        for (PacketNumber n = range.last + 1; n < above->first; ++n) REQUIRE(plain.count(n) == 0);
      }
      above = &range;
    }
    REQUIRE(received.range_count() <= ReceivedPackets::kMaxRanges);
  }
}

TEST_CASE("an unlimited number of gaps is forgotten from the oldest, and old numbers do not evict new ones") {
  ReceivedPackets received{kStart};
  for (PacketNumber n; n < 2000_packet; n += 2) received.on_packet(n, AckAsk::soon, kStart);
  CHECK(received.range_count() == ReceivedPackets::kMaxRanges);
  received.on_packet(1_packet, AckAsk::soon, kStart);
  CHECK(received.range_count() == ReceivedPackets::kMaxRanges);
  const auto ranges = ranges_of(received);
  REQUIRE(ranges.size() == kMaxAckRanges);
  CHECK(ranges.front() == NumberRange{1998_packet, 1998_packet});
  received.on_packet(1801_packet, AckAsk::soon, kStart);
  CHECK(received.range_count() == ReceivedPackets::kMaxRanges - 1);
}

TEST_CASE("without reordering, an ACK is due after ten packets or an eighth of the round trip") {
  PacketNumber next;
  auto received = after_the_first(next);
  received.set_round_trip(80ms);
  received.on_packet(next, AckAsk::soon, kStart + 1ms);
  CHECK(received.ack_due() == kStart + 11ms);
  for (int i = 0; i < 8; ++i) received.on_packet(++next, AckAsk::soon, kStart + 2ms);
  CHECK(received.ack_due() == kStart + 11ms);
  received.on_packet(++next, AckAsk::soon, kStart + 3ms);
  CHECK(received.ack_due() == kStart + 3ms);
  (void)received.make_ack(kStart + 3ms);
  CHECK_FALSE(received.ack_due());
  received.set_round_trip(2s);
  received.on_packet(++next, AckAsk::soon, kStart + 4ms);
  CHECK(received.ack_due() == kStart + 29ms);
}

TEST_CASE("an ACK is due at once for the first packets, after a gap, and on request") {
  ReceivedPackets fresh{kStart};
  fresh.on_packet(0_packet, AckAsk::soon, kStart);
  CHECK(fresh.ack_due() == kStart);

  PacketNumber next;
  auto received = after_the_first(next);
  received.on_packet(next, AckAsk::none, kStart);
  CHECK_FALSE(received.ack_due());
  received.on_packet(next + 1, AckAsk::at_once, kStart);
  CHECK(received.ack_due() == kStart);
  (void)received.make_ack(kStart);
  received.on_packet(next + 3, AckAsk::soon, kStart + 1ms);  // a gap
  CHECK(received.ack_due() == kStart + 1ms);
  (void)received.make_ack(kStart + 1ms);
  received.on_packet(next + 2, AckAsk::soon, kStart + 2ms);  // closed
  CHECK(received.ack_due() == kStart + 2ms);
}

TEST_CASE("an ACK carries the arrival of the largest number and the delay since then") {
  ReceivedPackets received{kStart + 100ms};
  received.on_packet(5_packet, AckAsk::soon, kStart + 120ms);
  received.on_packet(3_packet, AckAsk::soon, kStart + 125ms);
  const auto ack = received.make_ack(kStart + 130ms);
  REQUIRE(ack);
  CHECK(ack->largest() == 5_packet);
  CHECK(ack->arrival == 20ms);
  CHECK(ack->delay == 10ms);
}

TEST_CASE("acknowledged ranges are not reported again, except the largest number") {
  ReceivedPackets received{kStart};
  for (PacketNumber n; n < 100_packet; n += 2) received.on_packet(n, AckAsk::soon, kStart);
  CHECK(received.wants_acknowledgement());
  received.on_ack_acknowledged(90_packet);
  CHECK_FALSE(received.wants_acknowledgement());
  CHECK(ranges_of(received).back() == NumberRange{90_packet, 90_packet});
  received.on_ack_acknowledged(98_packet);
  CHECK(ranges_of(received) == std::vector<NumberRange>{{98_packet, 98_packet}});
  received.on_packet(7_packet, AckAsk::soon, kStart);  // late: told as any other
  CHECK(ranges_of(received) == std::vector<NumberRange>{{98_packet, 98_packet}, {7_packet, 7_packet}});
}
