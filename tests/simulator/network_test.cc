// SPDX-License-Identifier: Apache-2.0
// The virtual network itself: each thing that may happen to a datagram, at its time and in its measure.
#include "tests/simulator/network.h"

#include <catch2/catch.hpp>
#include <map>

#include "tests/simulator/constant_rate.h"

using namespace longhaul;
using namespace longhaul::simulator;
using namespace std::chrono_literals;

namespace {

constexpr Address kLeft{1, 1000}, kRight{2, 2000};

// Sends what it is told to, remembers what came.
class Scripted final : public Endpoint {
 public:
  void receive(Datagram& datagram, TimePoint now) override {
    arrived.push_back({now, datagram.from, {datagram.payload.begin(), datagram.payload.end()}});
  }
  void transmit(Outbox& out, TimePoint) override {
    ++served;
    for (auto& [to, payload] : to_send)
      out.send(to, payload, static_cast<std::uint32_t>(payload.size() + 28));
    to_send.clear();
  }
  std::optional<TimePoint> next_timeout() const override { return std::nullopt; }
  void on_timeout(TimePoint) override {}

  struct Arrival {
    TimePoint at;
    Address from;
    std::vector<std::byte> payload;
  };
  std::vector<std::pair<Address, std::vector<std::byte>>> to_send;
  std::vector<Arrival> arrived;
  int served = 0;
};

std::vector<std::byte> bytes_of(std::size_t size, int value) {
  return std::vector<std::byte>(size, std::byte(value));
}

struct TwoNodes {
  explicit TwoNodes(const LineConfig& config, std::uint64_t seed = 1)
      : network(seed),
        line(network.add_line(config)),
        left_node(network.attach(left, line, LineEnd::a, kLeft)),
        right_node(network.attach(right, line, LineEnd::b, kRight)) {}
  void send(std::size_t size, int value) {
    left.to_send.emplace_back(kRight, bytes_of(size, value));
    left_node.wake();
  }
  Scripted left, right;
  Network network;
  Line& line;
  Node& left_node;
  Node& right_node;
};

// Sends at `rate_bits` for `time` and answers what came out.
struct Load {
  Load(const DirectionConfig& direction, std::uint64_t rate_bits, Duration time, std::uint64_t seed = 1)
      : network(seed),
        line(network.add_line(LineConfig::symmetric(direction))),
        sender({.to = kRight, .rate_bits = rate_bits, .start = network.now(), .stop = network.now() + time}),
        node(network.attach(sender, line, LineEnd::a, kLeft)) {
    network.attach(receiver, line, LineEnd::b, kRight);
    node.wake();
  }
  CountingReceiver receiver;
  Network network;
  Line& line;
  ConstantRateSender sender;
  Node& node;
};

}  // namespace

TEST_CASE("a datagram takes its serialisation time and the delay, and arrives unchanged") {
  TwoNodes two(LineConfig::symmetric({.link = {.rate_bits = 8'000'000, .delay = 50ms}}));
  const TimePoint start = two.network.now();
  two.send(972, 7);
  two.send(972, 8);
  two.network.run_for(1s);
  REQUIRE(two.right.arrived.size() == 2);
  CHECK(two.right.arrived[0].at == start + 51ms);
  CHECK(two.right.arrived[1].at == start + 52ms);
  CHECK(two.right.arrived[0].from == kLeft);
  CHECK(two.right.arrived[0].payload == bytes_of(972, 7));
  CHECK(two.right.arrived[1].payload == bytes_of(972, 8));
  CHECK(two.left_node.bytes_sent() == 2000);
  CHECK(two.network.datagrams_inside() == 0);
}

TEST_CASE("rare interrupts deliver all datagrams since the last one at once") {
  LineConfig config =
      LineConfig::symmetric({.link = {.rate_bits = 8'000'000'000, .queue_bytes = 1'000'000, .delay = 1ms}});
  config.interrupt_interval = 50us;
  TwoNodes two(config);
  for (int i = 0; i < 100; ++i) two.left.to_send.emplace_back(kRight, bytes_of(972, i));
  two.left_node.wake();  // one microsecond each
  two.network.run_for(1s);
  REQUIRE(two.right.arrived.size() == 100);
  CHECK(two.right.served == 3);
  for (int i = 0; i < 100; ++i)
    CHECK(two.right.arrived[static_cast<std::size_t>(i)].payload == bytes_of(972, i));
}

TEST_CASE("a cut line loses entering and travelling packets in the direction that was cut") {
  TwoNodes two(LineConfig::symmetric({.link = {.delay = 100ms}}));
  two.send(100, 1);
  two.network.run_for(50ms);
  two.line.a_to_b().cut();
  two.send(100, 2);
  two.right.to_send.emplace_back(kLeft, bytes_of(100, 3));
  two.right_node.wake();
  two.network.run_for(1s);
  CHECK(two.right.arrived.empty());
  CHECK(two.left.arrived.size() == 1);
  CHECK(two.line.a_to_b().counters().cut == 2);
  two.line.restore();
  two.send(100, 4);
  two.network.run_for(1s);
  REQUIRE(two.right.arrived.size() == 1);
  CHECK(two.right.arrived[0].payload == bytes_of(100, 4));
  CHECK(two.network.datagrams_inside() == 0);
}

TEST_CASE("a node with a new address sends from it, and nothing is delivered to the old one") {
  TwoNodes two(LineConfig::symmetric({.link = {.delay = 10ms}}));
  two.right.to_send.emplace_back(kLeft, bytes_of(10, 1));
  two.right_node.wake();
  const Address moved{9, 999};
  two.left_node.readdress(moved);
  two.send(10, 2);
  two.network.run_for(1s);
  CHECK(two.left.arrived.empty());
  CHECK(two.line.unroutable() == 1);
  REQUIRE(two.right.arrived.size() == 1);
  CHECK(two.right.arrived[0].from == moved);
  two.right.to_send.emplace_back(moved, bytes_of(10, 3));
  two.right_node.wake();
  two.network.run_for(1s);
  CHECK(two.left.arrived.size() == 1);
}

TEST_CASE("datagrams larger than the MTU vanish") {
  TwoNodes two(LineConfig::symmetric({.link = {.delay = 1ms}, .mtu_bytes = 1400}));
  two.send(1372, 1);
  two.send(1373, 2);
  two.network.run_for(1s);
  CHECK(two.right.arrived.size() == 1);
  CHECK(two.line.a_to_b().counters().too_large == 1);
  two.line.a_to_b().change({.link = {.delay = 1ms}, .mtu_bytes = 1500});
  two.send(1373, 3);
  two.network.run_for(1s);
  CHECK(two.right.arrived.size() == 2);
}

TEST_CASE("bits are flipped with the configured probability, and change the payload") {
  TwoNodes two(LineConfig::symmetric({.link = {.delay = 1ms}, .corrupt = 0.1}), 42);
  for (int i = 0; i < 10'000; ++i) two.left.to_send.emplace_back(kRight, bytes_of(200, 0));
  two.left_node.wake();
  two.network.run_for(1s);
  REQUIRE(two.right.arrived.size() == 10'000);
  const auto changed = std::count_if(two.right.arrived.begin(), two.right.arrived.end(),
                                     [](const auto& a) { return a.payload != bytes_of(200, 0); });
  CHECK(changed > 900);
  CHECK(changed < 1100);
  // A bit may be flipped back, seldom.
  CHECK(two.line.a_to_b().counters().corrupted >= static_cast<std::uint64_t>(changed));
  CHECK(two.line.a_to_b().counters().corrupted < static_cast<std::uint64_t>(changed) + 10);
}

TEST_CASE("a policer passes its rate and burst, and never delays packets") {
  Load load({.link = {.delay = 5ms}, .policer = Policer{.rate_bits = 10'000'000, .burst_bytes = 50'000}},
            40'000'000, 10s);
  load.network.run_for(11s);
  const double passed = static_cast<double>(load.receiver.bytes());
  CHECK(passed == Approx(10e6 / 8 * 10 + 50'000).epsilon(0.001));
  CHECK(load.receiver.delay_ms().most() == Approx(5).epsilon(0.01));
  CHECK(load.line.a_to_b().counters().policed + load.receiver.packets() == load.sender.packets_sent());
}

TEST_CASE("loss, duplicates and reordering follow the model of the emulator") {
  Load load({.link = {.rate_bits = 100'000'000,
                      .delay = 20ms,
                      .loss = 0.05,
                      .burst_loss = wan::BurstLoss{.enter = 0.01, .leave = 0.2},
                      .reorder = 0.02,
                      .reorder_by = 5ms,
                      .duplicate = 0.01}},
            50'000'000, 10s);
  load.network.run_for(11s);
  const auto link = load.line.a_to_b().counters().link;
  const double sent = static_cast<double>(load.sender.packets_sent());
  // A bad spell lasts 5 packets and begins once in 100 good ones.
  CHECK(static_cast<double>(link.lost) / sent == Approx(0.05 + 0.95 * 5 / 105).epsilon(0.1));
  CHECK(static_cast<double>(link.duplicated) / sent == Approx(0.009).epsilon(0.2));
  CHECK(link.reordered > 500);
  CHECK(load.receiver.packets() == load.sender.packets_sent() - link.lost + link.duplicated);
  CHECK(load.network.datagrams_inside() == 0);
}

TEST_CASE("a line that becomes slower queues packets, and drops those beyond its queue") {
  Load load({.link = {.rate_bits = 10'000'000, .queue_bytes = 125'000, .delay = 10ms}}, 9'000'000, 10s);
  load.network.after(5s, [&] {
    DirectionConfig slower = load.line.a_to_b().config();
    slower.link.rate_bits = 5'000'000;
    load.line.a_to_b().change(slower);
  });
  load.network.run_for(4s);
  CHECK(load.receiver.delay_ms().most() < 13);
  load.network.run_for(8s);
  CHECK(load.receiver.delay_ms().most() == Approx(10 + 200).epsilon(0.05));
  CHECK(load.receiver.bytes() == Approx((5 * 9e6 + 5 * 5e6) / 8 + 125'000).epsilon(0.01));
}

TEST_CASE("captured datagrams can be sent again from any address") {
  TwoNodes two(LineConfig::symmetric({.link = {.delay = 1ms}}));
  std::vector<std::pair<Datagram, std::vector<std::byte>>> captured;
  two.line.a_to_b().tap([&](const Datagram& datagram) {
    captured.emplace_back(datagram, std::vector<std::byte>(datagram.payload.begin(), datagram.payload.end()));
  });
  two.send(100, 1);
  two.send(100, 2);
  two.network.run_for(1s);
  REQUIRE(captured.size() == 2);
  two.line.a_to_b().tap(nullptr);
  const Address stranger{66, 6};
  for (const auto& [datagram, payload] : captured)
    two.line.a_to_b().enter(stranger, datagram.to, payload, datagram.ip_bytes);
  two.network.run_for(1s);
  REQUIRE(two.right.arrived.size() == 4);
  CHECK(two.right.arrived[3].payload == bytes_of(100, 2));
  CHECK(two.right.arrived[3].from == stranger);
}

TEST_CASE("a datagram delivered twice is complete both times, whatever its receiver did to it") {
  class Decrypting final : public Endpoint {
   public:
    void receive(Datagram& datagram, TimePoint) override {
      right += datagram.payload.front() == std::byte{5};
      std::fill(datagram.payload.begin(), datagram.payload.end(), std::byte{0});
    }
    void transmit(Outbox&, TimePoint) override {}
    std::optional<TimePoint> next_timeout() const override { return std::nullopt; }
    void on_timeout(TimePoint) override {}
    int right = 0;
  };
  Decrypting receiver;
  Scripted sender;
  Network network(1);
  Line& line = network.add_line(LineConfig::symmetric({.link = {.delay = 1ms, .duplicate = 1}}));
  Node& node = network.attach(sender, line, LineEnd::a, kLeft);
  network.attach(receiver, line, LineEnd::b, kRight);
  for (int i = 0; i < 10; ++i) sender.to_send.emplace_back(kRight, bytes_of(100, 5));
  node.wake();
  network.run_for(1s);
  CHECK(receiver.right == 20);
}

TEST_CASE("the same seed gives the same run, another seed another run") {
  const auto run = [](std::uint64_t seed) {
    Load load({.link = {.rate_bits = 100'000'000, .delay = 20ms, .jitter = 2ms, .loss = 0.03}}, 80'000'000,
              2s, seed);
    load.network.run_for(3s);
    return std::pair(load.receiver.packets(), load.receiver.delay_ms().mean());
  };
  CHECK(run(1) == run(1));
  CHECK(run(1) != run(2));
}

TEST_CASE("an endpoint whose deadline does not advance is detected") {
  class Stuck final : public Endpoint {
   public:
    void receive(Datagram&, TimePoint) override {}
    void transmit(Outbox&, TimePoint) override {}
    std::optional<TimePoint> next_timeout() const override { return TimePoint{1h}; }
    void on_timeout(TimePoint) override {}
  };
  Stuck stuck;
  Network network(1);
  Node& node = network.attach(stuck, network.add_line({}), LineEnd::a, kLeft);
  node.wake();
  CHECK_THROWS_AS(network.run_for(1s), std::logic_error);
}

TEST_CASE("timers fire in order of time even if their deadlines were changed") {
  class Watched final : public Timer {
   public:
    Watched(Timeline& time, std::vector<TimePoint>& fired_at) : Timer(time), fired(fired_at) {}
    void fire(TimePoint now) override {
      CHECK(due == now);
      due.reset();
      fired.push_back(now);
    }
    void move(std::optional<TimePoint> at) {
      due = at;
      timeline().set(*this, at);
    }
    std::optional<TimePoint> due;
    std::vector<TimePoint>& fired;
  };
  const std::uint64_t seed = GENERATE(1, 2, 3);
  INFO("seed " << seed);
  wan::Chance chance(seed, 0);
  Timeline timeline;
  std::vector<TimePoint> fired;
  std::deque<Watched> timers;
  for (int i = 0; i < 50; ++i) timers.emplace_back(timeline, fired);
  std::size_t expected = 0;
  for (int step = 0; step < 5000; ++step) {
    Watched& timer = timers[static_cast<std::size_t>(chance.draw() * 50)];
    if (chance.happens(0.1))
      timer.move(std::nullopt);
    else
      timer.move(timeline.now() + Duration(static_cast<long>(chance.draw() * 1000)));
    if (!chance.happens(0.3)) continue;
    const TimePoint end = timeline.now() + Duration(static_cast<long>(chance.draw() * 300));
    expected += static_cast<std::size_t>(std::count_if(
        timers.begin(), timers.end(), [&](const Watched& t) { return t.due && *t.due <= end; }));
    timeline.run_until(end);
    REQUIRE(fired.size() == expected);
    REQUIRE(std::is_sorted(fired.begin(), fired.end()));
  }
}

TEST_CASE("percentiles are within one per cent") {
  Distribution distribution;
  for (int i = 1; i <= 10'000; ++i) distribution.add(i * 0.01);
  CHECK(distribution.percentile(50) == Approx(50).epsilon(0.01));
  CHECK(distribution.percentile(99.9) == Approx(99.9).epsilon(0.01));
  CHECK(distribution.percentile(100) == Approx(100));
  CHECK(distribution.percentile(0) <= 0.0101);
}

// By hand: test_simulator "[.speed]" says how many packets a second it carries.
TEST_CASE("ten gigabits a second over a quarter second", "[.speed]") {
  Load load({.link = {.rate_bits = 10'000'000'000, .queue_bytes = 312'000'000, .delay = 125ms, .loss = 0.01}},
            10'000'000'000, 5s);
  const auto start = std::chrono::steady_clock::now();
  load.network.run_for(6s);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  WARN(static_cast<double>(load.receiver.packets()) / seconds / 1e6 << " million packets a second");
  CHECK(load.receiver.packets() > 4'000'000);
}
