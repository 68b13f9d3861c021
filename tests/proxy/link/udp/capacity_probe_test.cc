// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/capacity_probe.h"

#include <catch2/catch.hpp>
#include <limits>

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {
// A full line that carries ours and, of others, all that is left.
struct SharedLine {
  static constexpr std::uint32_t kFull = 1500;
  static constexpr double kCapacity = 6e6, kOurs = 2e6, kRate = 8e6;  // bytes per second

  CapacityProbe probe;
  TimePoint now = TimePoint{} + 1h;
  std::uint64_t dispatched = 0;
  std::uint16_t epoch = 100;
  double capacity = kCapacity;
  bool at_once = false;  // a busy host takes all packets in one go

  static Duration time(double seconds) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  }

  void acknowledge(std::uint16_t of, Duration arrival) {
    probe.on_sample({.now = now,
                     .forward_delay = arrival - now.time_since_epoch(),
                     .sent_at = now,
                     .dispatched_bytes = dispatched,
                     .packet_bytes = kFull,
                     .full_packet_bytes = kFull,
                     .sent_epoch = of});
  }

  // `each` of the burst's packets that is acknowledged; `sending`: how long it takes to leave; `blur` is
  // added to when the last of them is said to have arrived.
  void burst(int packets, int each = 10, std::optional<Duration> sending = {}, Duration blur = 0ms,
             int missing = 0) {
    ++epoch;
    const double bytes = (packets + missing) * double{kFull};
    probe.begin(now, {.epoch = epoch, .usual_rate = kOurs, .rate = kRate, .bytes = bytes});
    const double between = at_once ? 1e-6 : kFull * (kRate + capacity - kOurs) / (kRate * capacity);
    const Duration begun = now.time_since_epoch() + 50ms;
    const int last = packets / each * each;
    for (int i = 1; i <= packets; ++i) {
      dispatched += kFull;
      const TimePoint left = now + sending.value_or(time(bytes / kRate)) * i / packets;
      CHECK(probe.on_send(left, kFull) == (missing == 0 && i == packets));
    }
    const std::uint64_t end = dispatched;
    for (int i = each; i <= packets; i += each) {
      dispatched = end - static_cast<std::uint64_t>(packets - i) * kFull;
      acknowledge(epoch, begun + time(between * i) + (i == last ? blur : 0ms));
    }
    dispatched = end + kFull;
    acknowledge(++epoch, begun + time(between * (packets + 1)));
    now += 1s;
  }
};
}  // namespace

TEST_CASE("the total rate of a line is known after two bursts, and not before") {
  SharedLine line;
  CHECK_FALSE(line.probe.capacity());
  line.burst(32);
  CHECK_FALSE(line.probe.capacity());
  line.burst(32);
  REQUIRE(line.probe.capacity());
  CHECK(*line.probe.capacity() == Approx(SharedLine::kCapacity).epsilon(0.001));
}

TEST_CASE(
    "a burst is measured by its acknowledged bytes, however many ACKs carry them, also as epochs restart") {
  const int each = GENERATE(1, 3, 16);
  CAPTURE(each);
  SharedLine line;
  line.epoch = std::numeric_limits<std::uint16_t>::max() - 2;
  for (int i = 0; i < 3; ++i) line.burst(32, each);
  CHECK(line.probe.capacity().value() == Approx(SharedLine::kCapacity).epsilon(0.001));
}

TEST_CASE("bursts that arrive early and late compensate for each other") {
  SharedLine line;
  for (int i = 0; i < 20; ++i) line.burst(32, 10, {}, i % 2 == 0 ? 1ms : -1ms);
  CHECK(line.probe.capacity().value() == Approx(SharedLine::kCapacity).epsilon(0.03));
}

TEST_CASE("a burst that did not leave at once, or has too few acknowledgements, is ignored") {
  SharedLine line;
  SECTION("it took the sender twice as long") {
    for (int i = 0; i < 3; ++i)
      line.burst(32, 10, 2 * SharedLine::time(32 * SharedLine::kFull / SharedLine::kRate) + 1ms);
  }
  SECTION("a single packet of it was acknowledged") {
    for (int i = 0; i < 3; ++i) line.burst(32, 20);
  }
  SECTION("its packets came at once, as a busy host takes them") {
    line.at_once = true;
    for (int i = 0; i < 3; ++i) line.burst(32);
  }
  SECTION("it was sent all at once") {
    for (int i = 0; i < 3; ++i) line.burst(32, 10, 1us);
  }
  SECTION("it was not sent completely") {
    for (int i = 0; i < 3; ++i) line.burst(32, 10, {}, 0ms, 5);
  }
  CHECK(line.probe.in_vain(line.now));
  CHECK_FALSE(line.probe.in_vain(line.now + 1min));
  CHECK_FALSE(line.probe.capacity());
}

TEST_CASE("the probe follows a line that becomes slower, and forgets it after a minute without a burst") {
  SharedLine line;
  for (int i = 0; i < 5; ++i) line.burst(32);
  line.capacity = SharedLine::kCapacity / 2;
  for (int i = 0; i < 40; ++i) line.burst(32);
  CHECK(line.probe.capacity().value() == Approx(SharedLine::kCapacity / 2).epsilon(0.02));
  CHECK_FALSE(line.probe.is_old(line.now + 50s));
  CHECK(line.probe.is_old(line.now + 2min));
  line.now += 2min;
  line.burst(32);
  CHECK_FALSE(line.probe.capacity());
  line.burst(32);
  CHECK(line.probe.capacity());
  line.probe.forget();
  CHECK_FALSE(line.probe.capacity());
}
