// SPDX-License-Identifier: Apache-2.0
// The line in virtual time: rates, queue, order and chances, exactly.
#include "tools/wan/link.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>

using namespace longhaul::wan;
using namespace std::chrono_literals;

namespace {

constexpr TimePoint kStart{1h};

struct Sent {
  TimePoint at;
  PacketId id;
  bool operator==(const Sent&) const = default;
};

void collect(Link& link, TimePoint now, std::vector<Sent>& out) {
  while (const auto departure = link.poll(now))
    for (unsigned copy = 0; copy < departure->copies; ++copy) out.push_back({departure->at, departure->id});
}

std::vector<Sent> drain(Link& link) {
  std::vector<Sent> out;
  collect(link, kStart + 1h, out);
  return out;
}

struct Fed {
  TimePoint at;
  std::uint32_t bytes;
};

std::vector<Fed> random_arrivals(std::uint64_t seed, std::size_t count, Duration mean_gap) {
  std::mt19937_64 random{seed};
  std::vector<Fed> arrivals;
  TimePoint at = kStart;
  for (std::size_t i = 0; i < count; ++i) {
    // Bursts: half of the packets come together with the one before.
    if (random() % 2 != 0) at += Duration{static_cast<Duration::rep>(random() % (4 * mean_gap.count() + 1))};
    arrivals.push_back({at, static_cast<std::uint32_t>(40 + random() % 1461)});
  }
  return arrivals;
}

LinkConfig everything() {
  LinkConfig config;
  config.rate_bits = 10'000'000;
  config.queue_bytes = 30'000;
  config.delay = 20ms;
  config.jitter = 5ms;
  config.loss = 0.02;
  config.burst_loss = BurstLoss{.enter = 0.01, .leave = 0.3};
  config.reorder = 0.05;
  config.reorder_by = 3ms;
  config.duplicate = 0.03;
  config.corrupt = 0.01;
  return config;
}

// 99.9 % of the time a fair count lies within this of its mean.
double tolerance(double trials, double share) { return 3.2905 * std::sqrt(trials * share * (1 - share)); }

}  // namespace

TEST_CASE("a packet is delayed by its bits at the rate, then by the delay") {
  Link link{{.rate_bits = 64'000, .delay = 30ms}, 1};
  CHECK(link.arrive(kStart, 1500, 0) == Fate::carried);
  CHECK(link.arrive(kStart, 100, 1) == Fate::carried);
  CHECK(link.arrive(kStart + 1s, 64, 2) == Fate::carried);
  CHECK(drain(link) == std::vector<Sent>{{kStart + 187'500us + 30ms, 0},
                                         {kStart + 200'000us + 30ms, 1},
                                         {kStart + 1s + 8ms + 30ms, 2}});
}

TEST_CASE("rounding errors do not add up over a long busy period") {
  // 40 bytes at 622 Mbit/s are 514.469 ns; rounded packet by packet a million of them would be 0.5 ms too
  // slow.
  Link link{{.rate_bits = 622'000'000, .queue_bytes = 1u << 30}, 1};
  constexpr PacketId kPackets = 1'000'000;
  for (PacketId id = 0; id < kPackets; ++id) link.arrive(kStart, 40, id);
  const auto out = drain(link);
  REQUIRE(out.size() == kPackets);
  CHECK(out.back().at - kStart == Duration{514'469'454});  // 320e6 / 622e6 s, rounded up
}

TEST_CASE("a line without a rate delays every packet equally and drops none") {
  Link link{{.rate_bits = 0, .queue_bytes = 0, .delay = 1s}, 1};
  for (PacketId id = 0; id < 1000; ++id) REQUIRE(link.arrive(kStart + id * 1us, 1500, id) == Fate::carried);
  const auto out = drain(link);
  REQUIRE(out.size() == 1000);
  for (PacketId id = 0; id < 1000; ++id) CHECK(out[id] == Sent{kStart + id * 1us + 1s, id});
}

TEST_CASE("the queue holds exactly its bytes beside the packet being sent") {
  Link link{{.rate_bits = 8'000'000, .queue_bytes = 3000}, 1};  // a byte takes a microsecond
  CHECK(link.arrive(kStart, 1500, 0) == Fate::carried);
  CHECK(link.arrive(kStart, 1500, 1) == Fate::carried);
  CHECK(link.arrive(kStart, 1500, 2) == Fate::carried);
  CHECK(link.queued_bytes(kStart) == 3000);
  CHECK(link.arrive(kStart, 1, 3) == Fate::dropped);
  CHECK(link.arrive(kStart + 1499us, 40, 4) == Fate::dropped);
  CHECK(link.arrive(kStart + 1500us, 1500, 5) == Fate::carried);  // the second has begun
  CHECK(link.arrive(kStart + 1500us, 1, 6) == Fate::dropped);
  CHECK(link.counters().dropped == 3);
  CHECK(link.counters().queue_peak_bytes == 3000);
  CHECK(link.counters().bytes_in == 4 * 1500 + 1 + 40 + 1);
  CHECK(link.counters().bytes_on_line == 4 * 1500);
  CHECK(drain(link).size() == 4);
  CHECK(link.packets_inside() == 0);
}

TEST_CASE("a packet larger than the queue passes an idle line") {
  Link link{{.rate_bits = 8'000'000, .queue_bytes = 0}, 1};
  CHECK(link.arrive(kStart, 1500, 0) == Fate::carried);
  CHECK(link.arrive(kStart + 1499us, 40, 1) == Fate::dropped);
  CHECK(link.arrive(kStart + 1500us, 40, 2) == Fate::carried);
}

TEST_CASE("an overloaded line delivers exactly its rate") {
  for (const std::uint64_t rate : {64'000ull, 1'544'000ull, 51'840'000ull, 1'000'000'000ull}) {
    Link link{{.rate_bits = rate, .queue_bytes = 64 * 1024}, 1};
    const double seconds_per_packet = 12'000.0 / static_cast<double>(rate);
    std::vector<Sent> out;
    TimePoint at = kStart;
    for (PacketId id = 0; id < 20'000; ++id) {
      at = kStart +
           std::chrono::duration_cast<Duration>(std::chrono::duration<double>(id * seconds_per_packet / 1.5));
      link.arrive(at, 1500, id);
      collect(link, at, out);
    }
    REQUIRE(out.size() > 10'000);
    const double span = std::chrono::duration<double>(out.back().at - out.front().at).count();
    const double measured = static_cast<double>(out.size() - 1) * 12'000 / span;
    CHECK(measured == Approx(static_cast<double>(rate)).epsilon(1e-7));
  }
}

TEST_CASE("the frequency of polling changes nothing") {
  const auto arrivals = random_arrivals(7, 20'000, 500us);
  const auto run = [&](Duration poll_every) {
    Link link{everything(), 42};
    std::vector<Sent> out;
    TimePoint poll_at = kStart;
    for (PacketId id = 0; id < arrivals.size(); ++id) {
      for (; poll_every != 0s && poll_at < arrivals[id].at; poll_at += poll_every)
        collect(link, poll_at, out);
      link.arrive(arrivals[id].at, arrivals[id].bytes, id);
    }
    for (const Sent& rest : drain(link)) out.push_back(rest);
    return std::pair{out, link.counters().dropped};
  };
  const auto never = run(0s);
  REQUIRE(never.second > 100);
  CHECK(run(100us) == never);
  CHECK(run(7ms) == never);
  CHECK(run(3s) == never);
}

TEST_CASE("arrivals that are read late, after the line was polled past them, keep their times") {
  const LinkConfig config{.rate_bits = 10'000'000, .queue_bytes = 20'000, .delay = 20ms};
  const auto arrivals = random_arrivals(3, 5'000, 500us);
  const auto run = [&](Duration read_late_by) {
    Link link{config, 1};
    std::vector<Sent> out;
    for (PacketId id = 0; id < arrivals.size(); ++id) {
      collect(link, arrivals[id].at + read_late_by, out);
      link.arrive(arrivals[id].at, arrivals[id].bytes, id);
    }
    for (const Sent& rest : drain(link)) out.push_back(rest);
    return std::pair{out, link.counters().dropped};
  };
  REQUIRE(run(0s).second > 10);
  CHECK(run(19ms) == run(0s));
}

TEST_CASE("a wake-up is never after the departure, and polling then returns the packet") {
  const auto arrivals = random_arrivals(11, 2'000, 500us);
  Link eager{everything(), 5};
  Link sleeper{everything(), 5};
  std::vector<Sent> slept;
  for (PacketId id = 0; id < arrivals.size(); ++id) {
    for (auto wake = sleeper.next_wakeup(); wake && *wake < arrivals[id].at; wake = sleeper.next_wakeup())
      while (const auto departure = sleeper.poll(*wake)) {
        REQUIRE(departure->at == *wake);  // not late
        for (unsigned copy = 0; copy < departure->copies; ++copy)
          slept.push_back({departure->at, departure->id});
      }
    eager.arrive(arrivals[id].at, arrivals[id].bytes, id);
    sleeper.arrive(arrivals[id].at, arrivals[id].bytes, id);
  }
  while (const auto wake = sleeper.next_wakeup()) collect(sleeper, *wake, slept);
  CHECK(slept == drain(eager));
}

TEST_CASE("the same seed gives the same line, another seed another") {
  const auto arrivals = random_arrivals(1, 5'000, 1ms);
  const auto run = [&](std::uint64_t seed) {
    Link link{everything(), seed};
    for (PacketId id = 0; id < arrivals.size(); ++id) link.arrive(arrivals[id].at, arrivals[id].bytes, id);
    return drain(link);
  };
  CHECK(run(9) == run(9));
  CHECK(run(9) != run(10));
}

TEST_CASE("switching on another effect leaves the losses as they were") {
  const auto lost = [](const LinkConfig& config) {
    Link link{config, 4};
    std::vector<PacketId> ids;
    for (PacketId id = 0; id < 5'000; ++id)
      if (link.arrive(kStart + id * 1ms, 100, id) == Fate::lost) ids.push_back(id);
    return ids;
  };
  const LinkConfig plain{.delay = 10ms, .loss = 0.05};
  LinkConfig more = plain;
  more.jitter = 3ms;
  more.reorder = 0.1;
  more.reorder_by = 2ms;
  more.duplicate = 0.1;
  more.corrupt = 0.1;
  CHECK_FALSE(lost(plain).empty());
  CHECK(lost(more) == lost(plain));
}

TEST_CASE("random loss matches the setting within the binomial bound") {
  for (const double share : {0.0005, 0.001, 0.005, 0.01, 0.05, 0.1}) {
    Link link{{.loss = share}, 2006};
    constexpr PacketId kPackets = 200'000;
    for (PacketId id = 0; id < kPackets; ++id) link.arrive(kStart + id * 1us, 100, id);
    CHECK(std::abs(static_cast<double>(link.counters().lost) - kPackets * share) <=
          tolerance(kPackets, share));
    CHECK(drain(link).size() == kPackets - link.counters().lost);
  }
}

TEST_CASE("burst loss matches the mean burst length and the share of its two states") {
  const double enter = 0.005;
  const double leave = 0.2;
  Link link{{.burst_loss = BurstLoss{.enter = enter, .leave = leave}}, 17};
  constexpr PacketId kPackets = 400'000;
  std::uint64_t bursts = 0;
  bool in_burst = false;
  for (PacketId id = 0; id < kPackets; ++id) {
    const bool lost = link.arrive(kStart + id * 1us, 100, id) == Fate::lost;
    bursts += lost && !in_burst ? 1 : 0;
    in_burst = lost;
  }
  const double lost = static_cast<double>(link.counters().lost);
  CHECK(lost / kPackets == Approx(enter / (enter + leave)).epsilon(0.08));
  CHECK(lost / static_cast<double>(bursts) == Approx(1 / leave).epsilon(0.05));
}

TEST_CASE("each of the two states of burst loss can lose some packets") {
  Link link{{.burst_loss = BurstLoss{.enter = 0.1, .leave = 0.1, .loss_bad = 0.5, .loss_good = 0.1}}, 17};
  constexpr PacketId kPackets = 200'000;
  for (PacketId id = 0; id < kPackets; ++id) link.arrive(kStart + id * 1us, 100, id);
  CHECK(static_cast<double>(link.counters().lost) / kPackets == Approx(0.3).epsilon(0.03));
}

TEST_CASE("a lost packet still takes its time on the line") {
  Link link{{.rate_bits = 8'000'000, .loss = 1}, 1};
  CHECK(link.arrive(kStart, 1500, 0) == Fate::lost);
  link.change(kStart, {.rate_bits = 8'000'000});
  CHECK(link.arrive(kStart, 500, 1) == Fate::carried);
  CHECK(drain(link) == std::vector<Sent>{{kStart + 2000us, 1}});
}

TEST_CASE("jitter spreads the delay and keeps the order") {
  Link link{{.delay = 50ms, .jitter = 20ms}, 3};
  constexpr PacketId kPackets = 20'000;
  for (PacketId id = 0; id < kPackets; ++id)
    link.arrive(kStart + id * 100ms, 100, id);  // too far apart to meet
  const auto spread = drain(link);
  double sum = 0;
  Duration least = 1h;
  Duration most{0};
  for (const Sent& packet : spread) {
    const Duration delay = packet.at - (kStart + packet.id * 100ms);
    sum += std::chrono::duration<double, std::milli>(delay).count();
    least = std::min(least, delay);
    most = std::max(most, delay);
  }
  CHECK(sum / kPackets == Approx(50).margin(0.4));
  CHECK(least >= 30ms);
  CHECK(least < 31ms);
  CHECK(most <= 70ms);
  CHECK(most > 69ms);

  Link crowded{{.delay = 50ms, .jitter = 20ms}, 3};
  for (PacketId id = 0; id < kPackets; ++id) crowded.arrive(kStart + id * 100us, 100, id);
  const auto out = drain(crowded);
  REQUIRE(out.size() == kPackets);
  for (PacketId id = 0; id < kPackets; ++id) REQUIRE(out[id].id == id);
  CHECK(crowded.counters().reordered == 0);
}

TEST_CASE("the reordered share matches the setting, and other packets keep their times") {
  Link link{{.delay = 10ms, .reorder = 0.05, .reorder_by = 2ms}, 8};
  constexpr PacketId kPackets = 100'000;
  for (PacketId id = 0; id < kPackets; ++id) link.arrive(kStart + id * 300us, 100, id);
  const auto out = drain(link);
  REQUIRE(out.size() == kPackets);
  std::uint64_t held = 0;
  for (const Sent& packet : out) {
    const Duration delay = packet.at - (kStart + packet.id * 300us);
    if (delay == 12ms)
      ++held;
    else
      REQUIRE(delay == 10ms);
  }
  CHECK(std::abs(static_cast<double>(held) - kPackets * 0.05) <= tolerance(kPackets, 0.05));
  // Two held back in a row keep their order to each other; only one with nothing behind it is not reordered.
  CHECK(link.counters().reordered <= held);
  CHECK(link.counters().reordered >= held - 2);
}

TEST_CASE("duplicates follow their original, take no line time, and are counted") {
  Link link{{.rate_bits = 8'000'000, .queue_bytes = 1u << 30, .duplicate = 0.1}, 8};
  constexpr PacketId kPackets = 20'000;
  for (PacketId id = 0; id < kPackets; ++id) link.arrive(kStart, 100, id);
  const auto out = drain(link);
  const std::uint64_t twice = link.counters().duplicated;
  CHECK(std::abs(static_cast<double>(twice) - kPackets * 0.1) <= tolerance(kPackets, 0.1));
  CHECK(out.size() == kPackets + twice);
  CHECK(link.counters().packets_out == out.size());
  CHECK(link.counters().bytes_out == out.size() * 100);
  for (const Sent& packet : out) REQUIRE(packet.at == kStart + (packet.id + 1) * 100us);
}

TEST_CASE("damage affects its share of the packets, at any position in them") {
  Link link{{.delay = 1ms, .corrupt = 0.1}, 8};
  constexpr PacketId kPackets = 20'000;
  for (PacketId id = 0; id < kPackets; ++id) link.arrive(kStart, 100, id);
  std::vector<int> tenths(10);
  while (const auto departure = link.poll(kStart + 1s))
    if (departure->flipped_at) ++tenths.at(static_cast<std::size_t>(*departure->flipped_at * 10));
  for (const int count : tenths) CHECK(std::abs(count - kPackets * 0.01) <= tolerance(kPackets, 0.01));
}

TEST_CASE("a new rate applies to bits that are not yet sent") {
  Link link{{.rate_bits = 8'000'000, .queue_bytes = 10'000, .delay = 5ms}, 1};
  for (PacketId id = 0; id < 3; ++id) link.arrive(kStart, 1000, id);
  // 1500 µs later packet 0 travels, packet 1 is half sent, packet 2 waits.
  link.change(kStart + 1500us, {.rate_bits = 800'000, .queue_bytes = 10'000, .delay = 50ms});
  CHECK(link.queued_bytes(kStart + 1500us) == 1000);
  link.arrive(kStart + 1500us, 100, 3);
  CHECK(drain(link) == std::vector<Sent>{{kStart + 1ms + 5ms, 0},
                                         {kStart + 6500us + 50ms, 1},
                                         {kStart + 16500us + 50ms, 2},
                                         {kStart + 17500us + 50ms, 3}});
}

TEST_CASE("a rate can be removed and set again") {
  Link link{{.rate_bits = 8'000, .queue_bytes = 10'000}, 1};
  link.arrive(kStart, 1000, 0);
  link.arrive(kStart, 1000, 1);
  link.change(kStart + 100ms, {.rate_bits = 0});
  link.arrive(kStart + 200ms, 1000, 2);
  link.change(kStart + 300ms, {.rate_bits = 8'000, .queue_bytes = 0});
  link.arrive(kStart + 300ms, 1000, 3);
  CHECK(
      drain(link) ==
      std::vector<Sent>{{kStart + 100ms, 0}, {kStart + 100ms, 1}, {kStart + 200ms, 2}, {kStart + 1300ms, 3}});
}

TEST_CASE("a smaller queue drops no packet that already waits") {
  Link link{{.rate_bits = 8'000'000, .queue_bytes = 10'000}, 1};
  for (PacketId id = 0; id < 8; ++id) link.arrive(kStart, 1000, id);
  link.change(kStart, {.rate_bits = 8'000'000, .queue_bytes = 2'000});
  CHECK(link.arrive(kStart, 1000, 8) == Fate::dropped);
  CHECK(link.arrive(kStart + 6ms, 1000, 9) == Fate::carried);
  CHECK(drain(link).size() == 9);
}

TEST_CASE("a shorter delay does not reorder") {
  Link link{{.delay = 1s}, 1};
  link.arrive(kStart, 100, 0);
  link.change(kStart + 1ms, {.delay = 10ms});
  link.arrive(kStart + 2ms, 100, 1);
  link.arrive(kStart + 2s, 100, 2);
  CHECK(drain(link) == std::vector<Sent>{{kStart + 1s, 0}, {kStart + 1s, 1}, {kStart + 2s + 10ms, 2}});
}

TEST_CASE("timestamps that go backwards count as the latest one seen") {
  Link link{{.delay = 10ms}, 1};
  link.arrive(kStart + 5ms, 100, 0);
  link.arrive(kStart, 100, 1);
  CHECK(drain(link) == std::vector<Sent>{{kStart + 15ms, 0}, {kStart + 15ms, 1}});
}

TEST_CASE("every packet that enters is lost, dropped, still inside or delivered") {
  Link link{everything(), 99};
  const auto arrivals = random_arrivals(99, 10'000, 300us);
  for (PacketId id = 0; id < arrivals.size(); ++id) {
    link.arrive(arrivals[id].at, arrivals[id].bytes, id);
    std::vector<Sent> out;
    if (id % 7 == 0) collect(link, arrivals[id].at, out);
  }
  drain(link);
  const LinkCounters& counters = link.counters();
  CHECK(counters.packets_in == arrivals.size());
  CHECK(counters.packets_in + counters.duplicated == counters.packets_out + counters.lost + counters.dropped);
  CHECK(counters.lost > 0);
  CHECK(counters.dropped > 0);
  CHECK(counters.reordered > 0);
}

TEST_CASE("packets can be lost on demand, without changing the random decisions") {
  LinkConfig config;
  config.loss = 0.05;
  const auto lost = [&](std::uint32_t on_demand) {
    Link link{config, 7};
    std::vector<PacketId> ids;
    for (PacketId id = 0; id < 1000; ++id) {
      if (id == 500) link.lose_next(on_demand);
      if (link.arrive(kStart + id * 1ms, 100, id) == Fate::lost) ids.push_back(id);
    }
    CHECK(link.counters().lost == ids.size());
    const auto last = on_demand ? std::optional<TimePoint>(kStart + (499 + on_demand) * 1ms) : std::nullopt;
    CHECK(link.counters().lost_on_demand == last);
    return ids;
  };
  const auto by_chance = lost(0);
  auto expected = by_chance;
  expected.insert(expected.end(), {500, 501});
  std::sort(expected.begin(), expected.end());
  expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
  CHECK(lost(2) == expected);
}
