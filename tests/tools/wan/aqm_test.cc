// SPDX-License-Identifier: Apache-2.0
// Managed queues against their specifications, by values worked out from those by hand; and the line that
// serves them.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

#include "tools/wan/aqm/fq_codel.h"
#include "tools/wan/aqm/pie.h"
#include "tools/wan/aqm/red.h"
#include "tools/wan/link.h"

using namespace longhaul::wan;
using namespace std::chrono_literals;
using Kind = AqmConfig::Kind;

namespace {

constexpr TimePoint kBegin{1h};
constexpr std::uint64_t kRoom = 10'000'000;

QueuedPacket packet(std::uint64_t number, TimePoint arrived, std::uint64_t flow = 0,
                    std::uint32_t bytes = 1500, Ecn ecn = Ecn::not_capable) {
  return {.number = number,
          .id = static_cast<PacketId>(number),
          .bytes = bytes,
          .flow = flow,
          .ecn = ecn,
          .arrived = arrived};
}

double ms(Duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

// A standing queue of 50 ms that is read every millisecond: when packets were dropped (or marked), from the
// first read on.
std::vector<double> codel_signals(const AqmConfig& config, Ecn ecn, Duration time) {
  CodelQueue queue(config);
  queue.set_line(12'000'000, kRoom);
  Discipline::Packets dropped;
  std::vector<double> at;
  std::uint64_t number = 0;
  for (TimePoint now = kBegin - 50ms; now < kBegin; now += 1ms)
    queue.enqueue(packet(number++, now, 0, 1500, ecn), now, dropped);
  for (TimePoint now = kBegin; now < kBegin + time; now += 1ms) {
    // As many come as leave or are dropped, with the age that keeps the delay at 50 ms.
    const std::size_t before = dropped.size();
    const auto next = queue.dequeue(now, dropped);
    REQUIRE(next);
    const std::size_t gone = dropped.size() - before;
    if (gone || next->ecn == Ecn::experienced) at.push_back(ms(now - kBegin));
    for (std::size_t i = 0; i <= gone; ++i) queue.enqueue(packet(number++, now, 0, 1500, ecn), now, dropped);
  }
  return at;
}

}  // namespace

TEST_CASE(
    "CoDel drops after an interval above the target, then at intervals that shrink with the root of the "
    "count") {
  // RFC 8289, section 5.3: the first after 100 ms, the next ones 100/sqrt(1), 100/sqrt(2), ... ms after that:
  // 100, 200, 270.7, 328.4, 378.4, 423.2, 464.0, rounded up to the next read.
  const std::vector<double> expected{100, 200, 271, 329, 379, 424, 464};
  const auto drops = codel_signals({.kind = Kind::codel}, Ecn::not_capable, 500ms);
  CHECK(drops == expected);
  // With ECN, marks take the place of drops; packets that are not capable of it are dropped.
  CHECK(codel_signals({.kind = Kind::codel, .ecn = true}, Ecn::capable, 500ms) == expected);
  CHECK(codel_signals({.kind = Kind::codel, .ecn = true}, Ecn::not_capable, 500ms) == expected);
  // Its own times: 40 ms of target are exceeded as well, 60 ms are not.
  CHECK(codel_signals({.kind = Kind::codel, .target = 40ms, .interval = 30ms}, Ecn::not_capable, 65ms) ==
        std::vector<double>{30, 60});
  CHECK(codel_signals({.kind = Kind::codel, .target = 60ms}, Ecn::not_capable, 1s).empty());
}

TEST_CASE("CoDel leaves a queue alone that is below the target once in each interval, or one packet long") {
  CodelQueue queue({.kind = Kind::codel});
  queue.set_line(12'000'000, kRoom);
  Discipline::Packets dropped;
  std::uint64_t number = 0;
  for (int i = 0; i < 5000; ++i) {
    const TimePoint now = kBegin + i * 1ms;
    const Duration delay = i % 90 == 0 ? 4ms : 50ms;
    queue.enqueue(packet(number++, now - delay), now, dropped);
    queue.enqueue(packet(number++, now - delay), now, dropped);
    queue.enqueue(packet(number++, now - delay), now, dropped);
    while (queue.dequeue(now, dropped)) {
    }
  }
  CHECK(dropped.empty());
}

TEST_CASE("CoDel remembers the frequency of drops that controlled the queue a short while ago") {
  CodelQueue queue({.kind = Kind::codel});
  queue.set_line(12'000'000, kRoom);
  Discipline::Packets dropped;
  std::uint64_t number = 0;
  const auto stand = [&](TimePoint from, Duration time, Duration delay) {
    std::vector<double> at;
    for (TimePoint now = from; now < from + time; now += 1ms) {
      queue.enqueue(packet(number++, now - delay), now, dropped);
      queue.enqueue(packet(number++, now - delay), now, dropped);
      const std::size_t before = dropped.size();
      queue.dequeue(now, dropped);
      while (queue.bytes() > 4500) queue.dequeue(now, dropped);
      if (dropped.size() > before) at.push_back(ms(now - from));
    }
    return at;
  };
  stand(kBegin, 1s, 50ms);
  stand(kBegin + 1s, 50ms, 1ms);  // good for a moment
  const auto again = stand(kBegin + 1050ms, 300ms, 50ms);
  REQUIRE(again.size() >= 3);
  // After the first drop not 100 ms until the next, as a count of 1 would have it.
  CHECK(again[1] - again[0] < 60);
}

TEST_CASE("PIE's probability follows its section 4.2") {
  PieQueue queue({.kind = Kind::pie}, 1);
  queue.set_line(12'000'000, kRoom);  // 75,000 bytes are 50 ms
  Discipline::Packets dropped;
  for (std::uint64_t i = 0; i < 50; ++i) queue.enqueue(packet(i, kBegin), kBegin, dropped);
  REQUIRE(dropped.empty());
  // Each step: (0.125 (0.050 - 0.015) + 1.25 (0.050 - old)) / the divisor of the present probability.
  const auto at = [&](int updates) {
    // Looks without a change of the queue: one out, one in.
    const TimePoint now = kBegin + updates * PieQueue::kUpdate;
    queue.dequeue(now, dropped);
    queue.enqueue(packet(1000, now), now, dropped);
    return queue.drop_probability();
  };
  CHECK(at(1) == Approx(0.066875 / 2048).epsilon(1e-9));               // 3.265e-5
  CHECK(at(2) == Approx(3.265381e-5 + 0.004375 / 128).epsilon(1e-6));  // 6.683e-5
  CHECK(at(3) == Approx(6.683350e-5 + 0.004375 / 128).epsilon(1e-6));  // 1.0101e-4
  CHECK(at(4) == Approx(1.0101318e-4 + 0.004375 / 32).epsilon(1e-6));  // 2.3773e-4
  CHECK(at(5) == Approx(2.3773193e-4 + 0.004375 / 32).epsilon(1e-6));
  CHECK(queue.burst_allowance() == PieQueue::kMaxBurst - 5 * PieQueue::kUpdate);
}

TEST_CASE("PIE drops nothing while its burst allowance lasts, and keeps to its target afterwards") {
  // A line of 12 Mbit/s to which 15 Mbit/s come.
  PieQueue queue({.kind = Kind::pie}, 7);
  queue.set_line(12'000'000, kRoom);
  Discipline::Packets dropped;
  double delay = 0;
  int samples = 0;
  std::optional<TimePoint> first_drop;
  std::uint64_t number = 0;
  TimePoint out = kBegin;
  for (TimePoint now = kBegin; now < kBegin + 60s; now += 800us) {
    for (; out <= now; out += 1ms) queue.dequeue(out, dropped);
    queue.enqueue(packet(number++, now), now, dropped);
    if (!dropped.empty() && !first_drop) first_drop = now;
    if (now < kBegin + 20s) continue;
    delay += static_cast<double>(queue.bytes()) * 8 / 12e3;
    ++samples;
  }
  REQUIRE(first_drop);
  CHECK(*first_drop - kBegin >= 150ms);
  CHECK(delay / samples == Approx(15).margin(2));  // ms
  // A fifth of what comes has to go.
  CHECK(static_cast<double>(dropped.size()) / static_cast<double>(number) == Approx(0.2).margin(0.02));
}

TEST_CASE("RED's probability rises from the least threshold to the most, and gently beyond it") {
  CHECK(RedQueue::probability(29'999, 30'000, 90'000) == 0);
  CHECK(RedQueue::probability(60'000, 30'000, 90'000) == Approx(0.05));
  CHECK(RedQueue::probability(90'000, 30'000, 90'000) == Approx(0.1));
  CHECK(RedQueue::probability(135'000, 30'000, 90'000) == Approx(0.55));
  CHECK(RedQueue::probability(180'000, 30'000, 90'000) == Approx(1));
}

TEST_CASE("RED spreads its drops evenly between one and as many packets as the probability's inverse") {
  RedQueue queue({.kind = Kind::red}, 3);
  queue.set_line(12'000'000, 360'000);  // thresholds 30,000 and 90,000
  CHECK(queue.least() == 30'000);
  CHECK(queue.most() == 90'000);
  Discipline::Packets dropped;
  std::uint64_t number = 0;
  // A queue that stands at 60,000 bytes: its average becomes the same, and the probability 0.05.
  for (; queue.bytes() < 60'000; ++number) queue.enqueue(packet(number, kBegin), kBegin, dropped);
  std::vector<std::uint64_t> gaps;
  std::uint64_t since = 0;
  for (int i = 0; i < 60'000; ++i) {
    const std::size_t before = dropped.size();
    queue.enqueue(packet(number++, kBegin), kBegin, dropped);
    ++since;
    if (dropped.size() > before) {
      if (i > 10'000) gaps.push_back(since);
      since = 0;
    } else {
      queue.dequeue(kBegin, dropped);
    }
  }
  CHECK(queue.average() == Approx(60'000).epsilon(0.01));
  double sum = 0;
  for (const auto gap : gaps) sum += static_cast<double>(gap);
  CHECK(*std::max_element(gaps.begin(), gaps.end()) <= 22);  // 1/0.05, and one that the average's noise adds
  CHECK(sum / static_cast<double>(gaps.size()) == Approx(10.5).margin(0.6));
}

TEST_CASE("RED's average decays while the line is idle") {
  RedQueue queue({.kind = Kind::red}, 3);
  queue.set_line(12'000'000, 360'000);
  Discipline::Packets dropped;
  for (std::uint64_t i = 0; i < 2000; ++i) queue.enqueue(packet(i, kBegin, 0, 15), kBegin, dropped);
  while (queue.dequeue(kBegin, dropped)) {
  }
  const double before = queue.average();
  REQUIRE(before > 1000);
  queue.enqueue(packet(9000, kBegin + 1s), kBegin + 1s, dropped);
  CHECK(queue.average() == Approx(before * std::pow(0.998, 1000)).epsilon(1e-6));  // 1000 packets of 1 ms
}

TEST_CASE("RED's average decays while the line is idle, even if it drops what arrives") {
  RedQueue queue({.kind = Kind::red}, 3);
  queue.set_line(12'000'000, 360'000);
  Discipline::Packets dropped;
  for (std::uint64_t i = 0; i < 20'000; ++i) queue.enqueue(packet(i, kBegin, 0, 15), kBegin, dropped);
  while (queue.dequeue(kBegin, dropped)) {
  }
  queue.set_line(1'000'000, 36'000);
  REQUIRE(queue.average() > 4 * queue.most());
  dropped.clear();
  for (std::uint64_t i = 1; i <= 60; ++i) {
    const TimePoint at = kBegin + i * 1s;
    queue.enqueue(packet(100'000 + i, at), at, dropped);
    queue.dequeue(at, dropped);
  }
  CHECK(dropped.size() > 1);
  CHECK(dropped.size() < 30);
  CHECK(queue.average() < queue.least());
}

TEST_CASE("FQ-CoDel shares by bytes, whatever the sizes of packets") {
  FqCodelQueue queue({.kind = Kind::fq_codel});
  queue.set_line(12'000'000, kRoom);
  Discipline::Packets dropped;
  for (std::uint64_t i = 0; i < 300; ++i) queue.enqueue(packet(i, kBegin, 1, 1500), kBegin, dropped);
  for (std::uint64_t i = 0; i < 900; ++i) queue.enqueue(packet(1000 + i, kBegin, 2, 500), kBegin, dropped);
  std::map<std::uint64_t, std::int64_t> bytes;
  for (int i = 0; i < 600; ++i) {
    const auto next = queue.dequeue(kBegin, dropped);
    REQUIRE(next);
    bytes[next->flow] += next->bytes;
    REQUIRE(std::abs(bytes[1] - bytes[2]) <= 2 * FqCodelQueue::kQuantum + 1500);
  }
  CHECK(dropped.empty());
}

TEST_CASE("with FQ-CoDel a flow that begins goes first, and each flow stays in order") {
  FqCodelQueue queue({.kind = Kind::fq_codel});
  queue.set_line(12'000'000, kRoom);
  Discipline::Packets dropped;
  for (std::uint64_t i = 0; i < 100; ++i) queue.enqueue(packet(i, kBegin, 1), kBegin, dropped);
  for (int i = 0; i < 10; ++i) CHECK(queue.dequeue(kBegin, dropped)->flow == 1);
  queue.enqueue(packet(1000, kBegin, 2, 100), kBegin, dropped);
  CHECK(queue.dequeue(kBegin, dropped)->flow == 2);
  std::uint64_t last = 9;
  while (const auto next = queue.dequeue(kBegin, dropped)) CHECK(next->number == ++last);
  CHECK(last == 99);
  CHECK(queue.bytes() == 0);
}

TEST_CASE(
    "a full FQ-CoDel queue drops from the front of the fattest flow, at most 64 packets and half of it") {
  FqCodelQueue queue({.kind = Kind::fq_codel});
  queue.set_line(12'000'000, 300'000);
  Discipline::Packets dropped;
  std::uint64_t number = 0;
  for (; number < 180; ++number) queue.enqueue(packet(number, kBegin, 1), kBegin, dropped);
  for (; number < 200; ++number) queue.enqueue(packet(number, kBegin, 2), kBegin, dropped);
  REQUIRE(dropped.empty());
  queue.enqueue(packet(number, kBegin, 2), kBegin, dropped);
  REQUIRE(dropped.size() == 64);
  for (std::size_t i = 0; i < dropped.size(); ++i) CHECK(dropped[i].number == i);
  CHECK(queue.bytes() == 137 * 1500);
}

namespace {

struct Fate_ {
  TimePoint at;
  unsigned copies;
  bool marked;
  bool operator==(const Fate_&) const = default;
};

// Arrivals at random over some flows; polled every `step`.
std::map<PacketId, Fate_> fates(const LinkConfig& config, std::uint64_t seed, Duration step) {
  std::mt19937_64 random{seed};
  Link link(config, seed);
  std::map<PacketId, Fate_> out;
  std::set<PacketId> carried;
  TimePoint at = kBegin, polled = kBegin;
  for (PacketId id = 0; id < 6000; ++id) {
    at += Duration{static_cast<Duration::rep>(random() % 1'600'000)};
    for (; polled < at; polled += step)
      while (const auto departure = link.poll(polled))
        out[departure->id] = {departure->copies ? departure->at : TimePoint{}, departure->copies,
                              departure->marked};
    const auto bytes = static_cast<std::uint32_t>(40 + random() % 1461);
    const Ecn ecn = random() % 2 ? Ecn::capable : Ecn::not_capable;
    if (link.arrive(at, bytes, id, {.flow = random() % 4, .ecn = ecn}) == Fate::carried) carried.insert(id);
  }
  while (const auto departure = link.poll(kBegin + 2h))
    out[departure->id] = {departure->copies ? departure->at : TimePoint{}, departure->copies,
                          departure->marked};
  CHECK(link.packets_inside() == 0);
  CHECK(out.size() == carried.size());  // each that was taken comes out or is reported
  for (const auto& [id, fate] : out) REQUIRE(carried.contains(id));
  const auto& counters = link.counters();
  CHECK(counters.packets_in == 6000);
  CHECK(counters.packets_out == 6000 - counters.dropped - counters.lost);
  return out;
}

}  // namespace

TEST_CASE(
    "whatever manages the queue, how often the line is polled changes nothing, and each packet has one "
    "fate") {
  for (const Kind kind : {Kind::codel, Kind::fq_codel, Kind::pie, Kind::red})
    for (const bool ecn : {false, true}) {
      INFO(name_of(kind) << (ecn ? " with ECN" : ""));
      const LinkConfig config{.rate_bits = 7'000'000,
                              .queue_bytes = 100'000,
                              .delay = 5ms,
                              .loss = 0.01,
                              .aqm = AqmConfig{.kind = kind, .ecn = ecn}};
      const auto often = fates(config, 5, 100us);
      CHECK((often == fates(config, 5, 7ms)));
      CHECK((often == fates(config, 5, 1h)));
      const auto marked =
          std::count_if(often.begin(), often.end(), [](const auto& one) { return one.second.marked; });
      CHECK((marked > 0) == ecn);
    }
}

TEST_CASE("a managed queue that never needs managing is a line without one, to the nanosecond") {
  for (const Kind kind : {Kind::codel, Kind::pie, Kind::red}) {
    LinkConfig config{
        .rate_bits = 64'000'000, .queue_bytes = 10'000'000, .delay = 5ms, .jitter = 1ms, .loss = 0.01};
    const auto plain = fates(config, 9, 1ms);
    config.aqm = AqmConfig{.kind = kind};
    CHECK((fates(config, 9, 1ms) == plain));
  }
}

TEST_CASE("what waits survives every change of the queue's management, of the rate and of the limit") {
  std::mt19937_64 random{11};
  LinkConfig config{.rate_bits = 5'000'000, .queue_bytes = 200'000, .delay = 5ms};
  Link link(config, 1);
  std::size_t taken = 0, out = 0, gone = 0;
  TimePoint at = kBegin;
  for (PacketId id = 0; id < 5000; ++id) {
    at += Duration{static_cast<Duration::rep>(random() % 4'000'000)};
    taken += link.arrive(at, 1500, id, {.flow = random() % 3}) == Fate::carried;
    if (id % 7 == 0) {
      const auto kind = random() % 5;
      config.aqm.reset();
      if (kind < 4) config.aqm = AqmConfig{.kind = static_cast<Kind>(kind)};
      config.rate_bits = random() % 9 ? 1'000'000 + random() % 9'000'000 : 0;
      config.queue_bytes = 3000 + random() % 300'000;
      const std::size_t inside = link.packets_inside();
      link.change(at, config);
      CHECK(link.packets_inside() == inside);
    }
    while (const auto departure = link.poll(at)) (departure->copies ? out : gone) += 1;
  }
  while (const auto departure = link.poll(at + 1h)) (departure->copies ? out : gone) += 1;
  CHECK(taken == out + gone);
  CHECK(link.packets_inside() == 0);
}

TEST_CASE("a policer in front of the line passes its rate and its burst, and a cut line takes nothing") {
  Link link({.rate_bits = 100'000'000,
             .queue_bytes = kRoom,
             .policer = Policer{.rate_bits = 8'000'000, .burst_bytes = 30'000}},
            1);
  int passed = 0;
  for (PacketId id = 0; id < 4000; ++id)
    passed += link.arrive(kBegin + id * 500us, 1000, id) == Fate::carried;
  // 2 s at a megabyte a second, and the burst.
  CHECK(passed == Approx(2029).margin(1));
  CHECK(link.counters().policed == 4000u - static_cast<unsigned>(passed));
  link.change(kBegin + 3s, {.rate_bits = 100'000'000, .cut = true});
  CHECK(link.arrive(kBegin + 3s, 1000, 5000) == Fate::dropped);
  CHECK(link.counters().cut == 1);
}
