// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cstdio>
#include <set>

#include "fec/delivery.h"
#include "fec/redundancy.h"

using namespace longhaul::fec;
using namespace longhaul::fec::test;

namespace {

constexpr Mode kOff{Mode::Kind::off};

}  // namespace

TEST_CASE("at 5 % loss messages meet their deadlines, with time to spare or with half a repair each") {
  for (const std::uint64_t seed : {1, 2}) {
    INFO("seed " << seed);
    const Delivery safe = deliver({.seed = seed, .loss = {0.05}});
    CHECK(safe.share_later_than(25) < 0.004);
    CHECK(safe.late(0.999) <= 60);
    CHECK(safe.repairs_per_message() < 1.05);
    const Delivery thrifty = deliver({.seed = seed, .loss = {0.05}, .options = {.interactive_late = 0.008}});
    CHECK(thrifty.late(0.99) <= 25);
    CHECK(thrifty.late(0.999) <= 100);
    CHECK(thrifty.repairs_per_message() < 0.56);
  }
}

TEST_CASE("unevenly spaced, isolated and rare messages meet their deadlines too") {
  const Delivery uneven = deliver({.loss = {0.05}, .jitter = 2ms});
  CHECK(uneven.late(0.99) <= 25);
  CHECK(uneven.late(0.999) <= 100);
  const Delivery alone = deliver({.loss = {0.05}, .bulk_spacing = {}});
  CHECK(alone.late(0.99) <= 25);
  CHECK(alone.late(0.999) <= 100);
  const Delivery rare = deliver({.loss = {0.05}, .messages = 4000, .spacing = 200ms, .bulk_spacing = 10ms});
  CHECK(rare.late(0.99) <= 25);
  const Delivery dense = deliver({.loss = {0.05}, .spacing = 2ms});
  CHECK(dense.late(0.99) <= 25);
  CHECK(dense.repairs_per_message() < 0.3);
}

TEST_CASE("bursts among other packets cost little more than independent losses") {
  const Delivery d = deliver({.loss = {0.05, 3}, .messages = 6000, .bulk_spacing = 240us});
  CHECK(d.late(0.99) <= 25);
  CHECK(d.late(0.999) <= 100);
  CHECK(d.repairs_per_message() < 1.1);
}

TEST_CASE("a clean path gets no symbols and no repairs") {
  const Delivery d = deliver({.loss = {0}, .messages = 2000});
  CHECK(d.repairs == 0);
  CHECK(d.decoder.sources == 0);
  CHECK(d.late(1) == 0);
}

TEST_CASE("losses during a queue get no repairs") {
  const Delivery d = deliver({.loss = {0.03}, .messages = 2000, .queue_stands = true});
  CHECK(d.repairs == 0);
}

TEST_CASE("protection begins within a few losses and ends some seconds after the last") {
  // 21 packets pass for every message: packet 21,000 is beside message 1000, 20 s after the start.
  const Delivery begins = deliver({.loss = {0, 0, 0.05, 21'000}, .messages = 2000});
  CHECK(begins.first_repair_at > 1000);  // a round trip later is 1005
  CHECK(begins.first_repair_at < 1020);
  const Delivery ends = deliver({.loss = {0.05, 0, 0, 21'000}, .messages = 3000});
  CHECK(ends.repairs > 900);
  CHECK(ends.repairs < 2000);
}

TEST_CASE("no repair is sent when repairs are off, and a fixed K:M is kept whatever the loss") {
  CHECK(deliver({.loss = {0.05}, .mode = kOff, .messages = 1000}).repairs == 0);
  const Delivery clean = deliver({.loss = {0}, .mode = {Mode::Kind::fixed, 10, 3}, .messages = 5000});
  CHECK(clean.repairs_per_message() == Approx(0.3).epsilon(0.01));
  const Delivery lossy = deliver({.loss = {0.05}, .mode = {Mode::Kind::fixed, 4, 1}, .messages = 5000});
  CHECK(static_cast<double>(lossy.repairs) ==
        Approx(0.25 * static_cast<double>(lossy.message_packets + lossy.resent)).epsilon(0.01));
}

namespace {

struct Tail {
  std::set<SymbolId> lost, restored;
  std::uint64_t repairs = 0;
};

// `symbols` packets of bulk, one every 240 µs, and then nothing; some of it lost.
Tail send_bulk(Controller& controller, TimePoint& now, std::uint32_t symbols, Loss loss, std::uint64_t seed) {
  Path path(loss, seed);
  WindowEncoder encoder({2048});
  WindowDecoder decoder({2048});
  Tail tail;
  const std::vector<std::byte> payload(1200, std::byte{1});
  const auto obey = [&] {
    while (const auto order = controller.poll_order(now)) {
      REQUIRE(order->of == Class::bulk);
      for (const Repair& r : encoder.repair(
               {encoder.next_id() - order->skip - order->symbols, order->symbols}, order->repairs)) {
        ++tail.repairs;
        controller.on_sent(now, std::nullopt);
        if (!path.loses_next()) decoder.on_repair(r);
      }
    }
    while (const auto r = decoder.poll_restored()) tail.restored.insert(r->id);
  };
  for (std::uint32_t i = 0; i < symbols; ++i, now += 240us) {
    controller.on_sent(now, Class::bulk);
    const SymbolId id = encoder.add(payload);
    if (path.loses_next())
      tail.lost.insert(id);
    else
      decoder.on_source(id, payload);
    obey();
  }
  CHECK(controller.protects(Traffic::bulk, {}) == Class::bulk);
  CHECK(tail.repairs == 0);
  controller.on_quiet(now);
  const auto timeout = controller.next_timeout();
  REQUIRE(timeout);
  now = *timeout;
  obey();
  return tail;
}

}  // namespace

TEST_CASE("a bulk transfer gets repairs for its tail only, and they restore it") {
  // 250 ms of round trip at 240 µs a packet: about a thousand packets are unanswered when the sender goes
  // quiet.
  for (const Loss loss : {Loss{0.01}, Loss{0.05}, Loss{0.1}, Loss{0.05, 3}}) {
    INFO("loss " << loss.rate << " bursts " << loss.burst);
    std::size_t lost = 0, restored = 0, repairs = 0;
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      Controller controller;
      TimePoint now{};
      LossReport report{.delivered = 10'000};
      report.lost = static_cast<std::uint32_t>(10'000 * loss.rate);
      report.bursts = loss.burst > 0 ? static_cast<std::uint32_t>(report.lost / loss.burst)
                                     : static_cast<std::uint32_t>(report.lost * (1 - loss.rate));
      controller.on_report(now, report, 250ms);
      const Tail tail = send_bulk(controller, now, 8000, loss, seed);
      repairs += tail.repairs;
      restored += tail.restored.size();
      lost += static_cast<std::size_t>(std::distance(tail.lost.lower_bound(8000 - 1150), tail.lost.end()));
    }
    INFO("lost of the tails " << lost << ", restored " << restored << ", repairs " << repairs);
    CHECK(static_cast<double>(restored) > (loss.burst > 0 ? 0.9 : 0.98) * static_cast<double>(lost));
    // Beyond what was lost, and would have been sent again: less than 2 % of the transfer.
    CHECK(static_cast<double>(repairs - restored) < 0.02 * 12 * 8000);
  }
}

TEST_CASE("continuous bulk traffic is not protected until it pauses") {
  Controller controller;
  TimePoint now{};
  controller.on_report(now, {.delivered = 9500, .lost = 500, .bursts = 490}, 100ms);
  for (; now <= TimePoint{} + 3990ms; now += 1ms) {
    REQUIRE(controller.protects(Traffic::bulk, {}) == Class::bulk);
    controller.on_sent(now, Class::bulk);
  }
  for (; now <= TimePoint{} + 10s; now += 1ms)
    controller.on_sent(now, controller.protects(Traffic::bulk, {}));
  CHECK_FALSE(controller.protects(Traffic::bulk, {}));
  CHECK(controller.counters().symbols[index_of(Class::bulk)] < 4010);
  CHECK_FALSE(controller.poll_order(now));
  controller.on_quiet(now);
  now += 50ms;
  CHECK(controller.protects(Traffic::bulk, {}) == Class::bulk);
  controller.on_sent(now, Class::bulk);
  CHECK(controller.protects(Traffic::bulk, {}) == Class::bulk);
  controller.on_quiet(now);
  CHECK(controller.poll_order(now + 5ms).has_value());
}

TEST_CASE("a bulk transfer that pauses all the time does not get repairs for every tail") {
  Controller controller;
  TimePoint now{};
  controller.on_report(now, {.delivered = 9500, .lost = 500, .bursts = 490}, 100ms);
  std::uint64_t repairs = 0;
  const std::uint32_t pauses = 5000;
  for (std::uint32_t i = 0; i < pauses; ++i) {
    for (int packet = 0; packet < 4; ++packet) controller.on_sent(now, Class::bulk);
    controller.on_quiet(now);
    now += 10ms;
    while (const auto order = controller.poll_order(now)) repairs += order->repairs;
  }
  // 5 % that were lost anyway, and the overhead.
  CHECK(static_cast<double>(repairs) <= 32 + pauses * 4 * (0.05 + 0.015));
  CHECK(static_cast<double>(repairs) > pauses * 4 * 0.05);
}

TEST_CASE("the next timeout is always in the future") {
  Controller controller;
  TimePoint now{};
  controller.on_report(now, {.delivered = 9500, .lost = 500, .bursts = 490}, 100ms);
  CHECK_FALSE(controller.next_timeout());
  for (int i = 0; i < 1000; ++i) {
    if (i % 3 == 0) controller.on_sent(now, Class::interactive);
    if (i % 5 == 0) controller.on_sent(now, Class::bulk);
    if (i % 7 == 0) controller.on_sent(now, Class::fixed, {Mode::Kind::fixed, 10, 2});
    controller.on_quiet(now);
    while (controller.poll_order(now)) {
    }
    if (const auto timeout = controller.next_timeout()) REQUIRE(*timeout > now);
    now += 1500us;
  }
}

TEST_CASE("the probability of a shortfall equals the exact one") {
  // 3 symbols, 1 repair: more lost than arrived repairs means two or more of the four.
  const double p = 0.1, q = 0.9;
  CHECK(shortfall(3, 1, p) == Approx(1 - q * q * q * q - 4 * p * q * q * q));
  CHECK(shortfall(10, 0, p) == Approx(1 - std::pow(q, 10)));
  CHECK(shortfall(10, 3, 0) == 0);
  CHECK(shortfall(10, 3, 1) == 1);
  CHECK(repairs_for(100, 0.05, 1, 1e-3, 64) >= 12);
  CHECK(repairs_for(100, 0.05, 1, 1e-3, 64) <= 15);
  CHECK(repairs_for(100, 0.05, 3, 1e-3, 64) > repairs_for(100, 0.05, 1, 1e-3, 64));
  CHECK(repairs_for(100, 0.05, 1, 1e-3, 5) == 5);
}

TEST_CASE("figures of the README: how late messages are", "[.figures]") {
  struct Line {
    const char* name;
    Loss loss;
    Duration bulk;
    Mode mode{};
    Duration spacing = 20ms;
    double late = ControllerOptions{}.interactive_late;
  };
  const Line lines[] = {
      {"0 %, bulk beside", {0}, 240us},
      {"0.1 %, bulk beside", {0.001}, 240us},
      {"1 %, bulk beside", {0.01}, 240us},
      {"2 %, bulk beside", {0.02}, 240us},
      {"5 %, bulk beside", {0.05}, 240us},
      {"5 %, bulk, thrifty", {0.05}, 240us, {}, 20ms, 0.008},
      {"5 %, bulk, FEC off", {0.05}, 240us, kOff},
      {"5 %, bulk, FEC 2:1", {0.05}, 240us, {Mode::Kind::fixed, 2, 1}},
      {"5 %, bulk, FEC 1:1", {0.05}, 240us, {Mode::Kind::fixed, 1, 1}},
      {"5 %, bulk, FEC 10:2", {0.05}, 240us, {Mode::Kind::fixed, 10, 2}},
      {"5 %, alone", {0.05}, {}},
      {"10 %, bulk beside", {0.1}, 240us},
      {"20 %, bulk beside", {0.2}, 240us},
      {"GE 1 % bursts 3, bulk", {0.01, 3}, 240us},
      {"GE 5 % bursts 3, bulk", {0.05, 3}, 240us},
      {"GE 5 % bursts 10, bulk", {0.05, 10}, 240us},
      {"GE 5 % bursts 3, alone", {0.05, 3}, {}},
      {"5 %, every 5 ms", {0.05}, 240us, {}, 5ms},
      {"5 %, every 1.5 ms", {0.05}, 240us, {}, 1500us},
      {"5 %, every 50 ms", {0.05}, 240us, {}, 50ms},
  };
  std::printf("%-24s %8s %8s %8s %8s %9s %9s\n", "loss", "p50 ms", "p99", "p99.9", "> 25 ms", "repairs/m",
              "resent");
  for (const Line& line : lines) {
    Scenario s{.seed = 7,
               .loss = line.loss,
               .mode = line.mode,
               .options = {.interactive_late = line.late},
               .messages = 20000,
               .spacing = line.spacing,
               .bulk_spacing = line.bulk};
    const Delivery d = deliver(s);
    std::printf("%-24s %8.1f %8.1f %8.1f %7.2f%% %9.3f %9llu\n", line.name, d.late(0.5), d.late(0.99),
                d.late(0.999), 100 * d.share_later_than(25), d.repairs_per_message(),
                static_cast<unsigned long long>(d.resent));
  }
}
