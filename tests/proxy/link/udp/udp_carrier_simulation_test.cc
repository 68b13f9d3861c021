// SPDX-License-Identifier: Apache-2.0
// Sessions over UDP carriers on lines that do everything a line can do to them: every byte is compared, and
// transfers go on by themselves. Longer and faster runs are in tests/bench/simulated.
#include <catch2/catch.hpp>

#include "../lock_step.h"
#include "../simulated_flow.h"
#include "proxy/link/udp/rate_law.h"
#include "simulated_udp_pair.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;
using longhaul::link::udp::seconds;

namespace {

// Sanitizers and debug builds are ten times slower: they see less of the same.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
constexpr std::uint64_t kSlow = 8;
#else
constexpr std::uint64_t kSlow = 1;
#endif

constexpr double kPayloadShare = 0.95;  // at least, of IP bytes

const config::Features kNoRepairs{.fec = {.mode = config::Fec::Mode::off}};

struct Simulation {
  explicit Simulation(const UdpPairOptions& options) : pair(options), flows(pair) {}
  UdpPair pair;
  FlowsOn<UdpPair> flows;
};

void check_nothing_left(Simulation& two) {
  for (UdpEnd* side : {&two.pair.a, &two.pair.b}) {
    CHECK(side->session.state().live_streams == 0);
    CHECK(side->retained.used_bytes() == 0);
    CHECK_FALSE(side->error);
  }
}

void check_complete(Simulation& two, Duration patience) {
  REQUIRE(two.pair.run_until([&] { return two.flows.all_complete(); }, patience));
  CHECK(two.flows.all_right());
  two.pair.run_for(5s);
  check_nothing_left(two);
}

}  // namespace

TEST_CASE("a pair of carriers is up within two round trips and carries bytes both ways") {
  const std::uint64_t seed = GENERATE(1, 2, 3);
  INFO("seed " << seed);
  Simulation two({.seed = seed, .line = line_of(50, 100ms), .features = kNoRepairs});
  REQUIRE(two.pair.run_until([&] { return two.pair.up(); }, 250ms));
  two.flows.start(200'000, 3'000'000 / kSlow);
  check_complete(two, 30s);
}

TEST_CASE("bytes arrive complete over lines with loss, bursts, reordering, duplicates and jitter") {
  for (std::uint64_t seed = 1; seed <= 24 / kSlow; ++seed) {
    std::mt19937_64 random(seed);
    simulator::LineConfig config =
        line_of(5 + static_cast<double>(random() % 95), std::chrono::milliseconds(2 + random() % 300), 0,
                0.2 + static_cast<double>(random() % 20) / 10);
    for (simulator::DirectionConfig* direction : {&config.a_to_b, &config.b_to_a}) {
      direction->link.loss = static_cast<double>(random() % 15) / 100;
      if (random() % 2) direction->link.burst_loss = wan::BurstLoss{.enter = 0.01, .leave = 0.2};
      direction->link.reorder = static_cast<double>(random() % 5) / 100;
      direction->link.reorder_by = std::chrono::milliseconds(random() % 30);
      direction->link.duplicate = static_cast<double>(random() % 3) / 100;
      direction->link.jitter = std::chrono::microseconds(random() % 5000);
      direction->corrupt = random() % 2 ? 0.01 : 0;
    }
    UdpPairOptions options{.seed = seed, .line = config};
    if (random() % 2) options.rate_bits = config.a_to_b.link.rate_bits;
    if (random() % 2) options.features = kNoRepairs;
    if (random() % 2) options.cipher = udp::Cipher::chacha20_poly1305;
    INFO("seed " << seed);
    Simulation two(options);
    for (int i = 0; i < 5; ++i) two.flows.start(random() % 1'000'000, random() % 1'000'000);
    check_complete(two, 300s);
  }
}

// As SMB1 reads, which no proxy without its module can hasten: it must not be slower either.
TEST_CASE("blocks requested one after the other arrive as fast as the line carries them") {
  struct Case {
    double megabits;
    Duration rtt;
  };
  for (const auto& [megabits, rtt] :
       {Case{1.544, 30ms}, Case{51.84, 1ms}, Case{51.84, 30ms}, Case{51.84, 100ms}}) {
    constexpr std::uint64_t kBlock = 60'000;
    const unsigned blocks = 40;
    INFO(megabits << " Mbit/s, " << rtt / 1ms << " ms");
    Simulation two({.line = line_of(megabits, rtt), .features = kNoRepairs});
    REQUIRE(two.pair.run_until([&] { return two.pair.up(); }, 5s));
    Flow& flow = two.flows.start_open(FlowsOn<UdpPair>::simple_request());
    two.pair.run_for(1s);
    const auto took = read_in_lock_step(two.pair, flow, kBlock, blocks, rtt / 2, 60s);
    REQUIRE(took.has_value());
    CHECK(two.flows.all_right());
    const double least = seconds(rtt) + static_cast<double>(kBlock) / kPayloadShare * 8 / (megabits * 1e6);
    CHECK(seconds(*took) / blocks < 1.1 * least);
  }
}

TEST_CASE("acknowledgements are sent with data that only waits for its turn") {
  Simulation two({.line = line_of(1.544, 30ms), .rate_bits = 1'544'000, .features = kNoRepairs});
  REQUIRE(two.pair.run_until([&] { return two.pair.up(); }, 5s));
  two.flows.start(0, 1'000'000);
  two.pair.run_for(1s);
  const auto before = two.pair.b.carrier.counters().packets_sent;
  for (int i = 0; i < 20; ++i) {  // 3 s, in which the line carries 386 full packets
    two.flows.start(100, 0);
    two.pair.run_for(150ms);
  }
  CHECK(two.pair.b.carrier.counters().packets_sent - before < 386 + 12);
  check_complete(two, 30s);
}

TEST_CASE("short downloads over an unknown line take little longer than the line needs") {
  for (const double megabits : {1.544, 10.0, 51.84, 200.0})
    for (const Duration rtt : {Duration(1ms), Duration(30ms)})
      for (const std::uint64_t bytes : {50'000u, 250'000u, 1'000'000u}) {
        INFO(bytes << " bytes, " << megabits << " Mbit/s, " << rtt / 1ms << " ms");
        Simulation two({.line = line_of(megabits, rtt), .features = kNoRepairs});
        REQUIRE(two.pair.run_until([&] { return two.pair.up(); }, 5s));
        two.pair.run_for(1s);
        const TimePoint start = two.pair.now();
        TimePoint last = start;
        Flow& flow = two.flows.start(0, bytes);
        flow.client_reads.on_read = [&] { last = two.pair.now(); };
        REQUIRE(two.pair.run_until([&] { return flow.client_reads.read == bytes; }, 60s));
        CHECK(two.flows.all_right());
        // Its rate has to be found first, which takes up to three round trips.
        const double least = static_cast<double>(bytes) / kPayloadShare * 8 / (megabits * 1e6);
        CHECK(seconds(last - start) < 4 * seconds(rtt) + 1.05 * least);
      }
}

TEST_CASE("on a slow line almost all bytes are data") {
  constexpr std::uint64_t kBytes = 500'000;
  Simulation two({.line = line_of(1.544, 30ms), .features = kNoRepairs});
  REQUIRE(two.pair.run_until([&] { return two.pair.up(); }, 10s));
  two.pair.run_for(1s);
  const std::uint64_t before = two.pair.node_b.bytes_sent();
  Flow& flow = two.flows.start(0, kBytes);
  REQUIRE(two.pair.run_until([&] { return flow.client_reads.read == kBytes; }, 30s));
  // Heads take 4.8 %. What is acknowledged asks for acknowledgements itself, and those come on this way.
  CHECK(static_cast<double>(two.pair.node_b.bytes_sent() - before) < 1.056 * kBytes);
  check_complete(two, 10s);
}

TEST_CASE("a thousand streams at once arrive complete, with loss and adaptive repairs") {
  const std::uint64_t seed = 5;
  INFO("seed " << seed);
  Simulation two({.seed = seed, .line = line_of(200, 50ms, 0.02), .rate_bits = 200'000'000});
  REQUIRE(two.pair.run_until([&] { return two.pair.up(); }, 5s));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 1000; ++i) two.flows.start(random() % (40'000 / kSlow), random() % (40'000 / kSlow));
  check_complete(two, 120s);
}

TEST_CASE("a transfer resumes after its path was cut for thirty seconds") {
  const Duration cut = GENERATE(300ms, 3s, 30s);
  const std::uint64_t seed = GENERATE(11, 12);
  INFO("seed " << seed << ", cut " << seconds(cut) << " s");
  Simulation two({.seed = seed, .line = line_of(20, 80ms, 0.01), .features = kNoRepairs});
  Flow& flow = two.flows.start(10'000'000 / kSlow, 10'000'000 / kSlow);
  REQUIRE(two.pair.run_until([&] { return flow.client_reads.read > 500'000; }, 20s));
  two.pair.line.cut();
  two.pair.run_for(cut);
  CHECK(flow.client_reads.read < 10'000'000 / kSlow);
  two.pair.line.restore();
  const std::uint64_t read = flow.client_reads.read;
  // Both sides try once a second at least.
  REQUIRE(two.pair.run_until([&] { return flow.client_reads.read > read + 50'000; }, 6s));
  check_complete(two, 60s);
}

TEST_CASE("a carrier with exhausted keys fails at once and for good, without a stuck deadline") {
  Simulation two({.line = line_of(20, 80ms), .features = kNoRepairs, .limits = {.numbers = 500}});
  REQUIRE(two.pair.run_until([&] { return two.pair.up(); }, 1s));
  two.flows.start(2'000'000, 2'000'000);
  auto& a = two.pair.a.carrier;
  REQUIRE(two.pair.run_until([&] { return a.keys_worn_out(); }, 30s));
  CHECK(a.state() == udp::UdpCarrier::State::failed);
  const auto sent = a.counters().packets_sent;
  two.pair.run_for(30s);  // in which it is asked to probe each second
  CHECK(a.state() == udp::UdpCarrier::State::failed);
  CHECK(a.counters().packets_sent == sent);
  CHECK_FALSE(a.next_timeout());
}

TEST_CASE("a path that loses only one direction resumes when that is back") {
  const bool forward = GENERATE(false, true);
  const Duration cut = GENERATE(2s, 20s);
  const std::uint64_t seed = 21;
  INFO("seed " << seed << ", " << (forward ? "a to b" : "b to a") << ", cut " << seconds(cut) << " s");
  Simulation two({.seed = seed, .line = line_of(20, 80ms, 0.01), .features = kNoRepairs});
  Flow& flow = two.flows.start(8'000'000 / kSlow, 8'000'000 / kSlow);
  REQUIRE(two.pair.run_until([&] { return flow.client_reads.read > 400'000; }, 20s));
  simulator::Direction& direction = forward ? two.pair.line.a_to_b() : two.pair.line.b_to_a();
  direction.cut();
  two.pair.run_for(cut);
  direction.restore();
  const std::uint64_t read = flow.client_reads.read;
  REQUIRE(two.pair.run_until([&] { return flow.client_reads.read > read + 50'000; }, 6s));
  check_complete(two, 60s);
}

TEST_CASE("an address change during a transfer, on either side, is followed") {
  // 20 Mbit/s move 2.5 MB in the second between two changes.
  constexpr std::uint64_t kBytes = kSlow > 1 ? 4'000'000 : 8'000'000;
  const int which = GENERATE(0, 1, 2);
  const std::uint64_t seed = GENERATE(31, 32);
  INFO("seed " << seed << ", case " << which);
  Simulation two({.seed = seed, .line = line_of(20, 80ms, 0.01), .features = kNoRepairs});
  Flow& flow = two.flows.start(kBytes, kBytes);
  REQUIRE(two.pair.run_until([&] { return flow.client_reads.read > 300'000; }, 20s));
  if (which != 1) two.pair.node_a.readdress({0xc0a80001, 40'000});
  if (which == 2) two.pair.run_for(1s);
  if (which != 0) two.pair.node_b.readdress({0xc0a80002, 50'000});
  const std::uint64_t read = flow.client_reads.read;
  CHECK(two.pair.run_until([&] { return flow.client_reads.read > read + 100'000; }, 6s));
  check_complete(two, 60s);
}

TEST_CASE("corrupted packets count as losses, and no byte is wrong") {
  const std::uint64_t seed = GENERATE(41, 42, 43);
  INFO("seed " << seed);
  simulator::LineConfig config = line_of(20, 40ms);
  config.a_to_b.corrupt = config.b_to_a.corrupt = 0.05;
  Simulation two({.seed = seed, .line = config, .features = kNoRepairs});
  two.flows.start(2'000'000, 2'000'000);
  check_complete(two, 60s);
  CHECK(two.pair.a.carrier.counters().packets_dropped > 20);
  CHECK(two.pair.b.carrier.counters().packets_dropped > 20);
}

TEST_CASE("a replayed capture, from any sender, changes nothing") {
  const std::uint64_t seed = GENERATE(51, 52);
  INFO("seed " << seed);
  Simulation two({.seed = seed, .line = line_of(20, 40ms, 0.01), .features = kNoRepairs});
  struct Captured {
    simulator::Datagram datagram;
    Buffer payload;
    bool forward;
  };
  std::deque<Captured> capture;
  bool capturing = true;
  for (bool forward : {true, false})
    (forward ? two.pair.line.a_to_b() : two.pair.line.b_to_a())
        .tap([&, forward](const simulator::Datagram& datagram) {
          if (capturing)
            capture.push_back({datagram, Buffer(datagram.payload.begin(), datagram.payload.end()), forward});
        });
  two.flows.start(1'000'000, 1'000'000);
  REQUIRE(two.pair.run_until([&] { return two.flows.all_complete(); }, 30s));
  capturing = false;
  CHECK(capture.size() > 1000);
  Flow& flow = two.flows.start(3'000'000, 3'000'000);
  two.pair.wake();
  std::size_t replayed = 0;
  const simulator::Address stranger{0x42424242, 666};
  two.pair.network().every(1ms, [&] {
    for (int i = 0; i < 2 && replayed < capture.size(); ++i) {
      const Captured& old = capture[replayed++];
      (old.forward ? two.pair.line.a_to_b() : two.pair.line.b_to_a())
          .enter(replayed % 2 ? stranger : old.datagram.from, old.datagram.to, old.payload,
                 old.datagram.ip_bytes);
    }
  });
  check_complete(two, 60s);
  CHECK(flow.right());
  CHECK(replayed == capture.size());
  CHECK(two.pair.a.carrier.counters().packets_dropped + two.pair.b.carrier.counters().packets_dropped >=
        capture.size() / 2);
  CHECK(UdpEnd::from_asio(two.pair.a.carrier.peer()) == two.pair.address_b);
  CHECK(UdpEnd::from_asio(two.pair.b.carrier.peer()) == two.pair.address_a);
  // Nothing was ever said to the stranger.
  CHECK(two.pair.line.unroutable() == 0);
}

TEST_CASE("random packets from strangers are dropped without an answer") {
  const std::uint64_t seed = 61;
  INFO("seed " << seed);
  Simulation two({.seed = seed, .line = line_of(100, 40ms), .features = kNoRepairs});
  REQUIRE(two.pair.run_until([&] { return two.pair.up(); }, 5s));
  two.pair.run_for(2s);
  std::mt19937_64 random(seed);
  const auto id = two.pair.b.carrier.own_id();
  std::uint64_t sent = 0;
  const std::uint64_t before = two.pair.b.carrier.counters().packets_sent;
  two.pair.network().every(1ms, [&] {
    for (int i = 0; i < 10; ++i) {
      Buffer junk(random() % 1400);
      for (std::byte& b : junk) b = std::byte(random() & 0xff);
      // Half of them look as if they were for this carrier.
      if (random() % 2 && junk.size() > 13) {
        junk[0] = std::byte(0x40 | (random() & 1));
        std::copy(id.bytes.begin(), id.bytes.end(), junk.begin() + 1);
      }
      two.pair.line.a_to_b().enter({0x42424242, 666}, two.pair.address_b, junk,
                                   static_cast<std::uint32_t>(junk.size() + 28));
      ++sent;
    }
  });
  two.pair.run_for(10s / kSlow);
  two.pair.run_for(100ms);
  CHECK(two.pair.line.unroutable() == 0);  // no answer was sent
  CHECK(two.pair.b.carrier.counters().packets_dropped + 100 * 10 >= sent);
  // The session's own pings go on.
  CHECK(two.pair.b.carrier.counters().packets_sent - before < 100);
  two.flows.start(100'000, 100'000);
  check_complete(two, 20s);
}

TEST_CASE("a path that silently starts to drop larger packets is noticed") {
  const std::uint64_t seed = GENERATE(71, 72);
  const std::uint32_t mtu = GENERATE(1280u, 1400u);
  INFO("seed " << seed << ", MTU " << mtu);
  Simulation two({.seed = seed, .line = line_of(20, 60ms, 0.005), .features = kNoRepairs});
  Flow& flow = two.flows.start(6'000'000 / kSlow, 6'000'000 / kSlow);
  REQUIRE(two.pair.run_until([&] { return flow.client_reads.read > 300'000; }, 20s));
  for (simulator::LineEnd end : {simulator::LineEnd::a, simulator::LineEnd::b}) {
    simulator::DirectionConfig narrow = two.pair.line.from(end).config();
    narrow.mtu_bytes = mtu;
    two.pair.line.from(end).change(narrow);
  }
  const std::uint64_t read = flow.client_reads.read;
  CHECK(two.pair.run_until([&] { return flow.client_reads.read > read + 100'000; }, 8s));
  check_complete(two, 60s);
  CHECK(two.pair.a.failures + two.pair.b.failures <= 1);
}

TEST_CASE("an hour of random outages, with flows that start and end all the time") {
  const std::uint64_t seed = GENERATE(81, 94);
  INFO("seed " << seed);
  Simulation two({.seed = seed, .line = line_of(4, 80ms, 0.01), .max_streams = 512});
  std::mt19937_64 random(seed);
  const auto milliseconds = [&](std::uint64_t least, std::uint64_t most) {
    return std::chrono::milliseconds(least + random() % (most - least));
  };
  const TimePoint end = two.pair.network().now() + (kSlow > 1 ? Duration(10min) : Duration(1h));
  int outages = 0;
  std::uint16_t port = 10'000;
  while (two.pair.network().now() < end) {
    two.pair.run_for(milliseconds(1'000, 15'000));
    if (two.pair.a.session.state().live_streams < 30)
      for (int i = 0; i < 3; ++i)
        two.flows.start(random() % (random() % 4 ? 30'000 : 1'000'000),
                        random() % (random() % 4 ? 30'000 : 1'000'000));
    two.pair.wake();
    // Always shorter than the minute that streams are kept, carrier's own patience included.
    const auto length = random() % 4 ? milliseconds(10, 3'000) : milliseconds(3'000, 45'000);
    const auto kind = random() % 5;
    if (kind == 0) {
      two.pair.node_a.readdress({0xc0a80001, port++});
    } else {
      if (kind != 1) two.pair.line.a_to_b().cut();
      if (kind != 2) two.pair.line.b_to_a().cut();
      two.pair.run_for(length);
      two.pair.line.restore();
      ++outages;
      if (kind == 3) two.pair.node_a.readdress({0xc0a80001, port++});
    }
    REQUIRE_FALSE(two.pair.a.error);
    REQUIRE_FALSE(two.pair.b.error);
    REQUIRE(two.flows.all_right());
  }
  CHECK(outages > 20);
  CHECK(two.flows.flows().size() > 50);
  check_complete(two, 120s);
}

TEST_CASE("there are fewer acknowledgements than packets, however much is lost both ways") {
  const std::uint64_t seed = 101;
  const bool told = GENERATE(true, false);
  INFO("seed " << seed);
  Simulation two({.seed = seed, .line = line_of(50, 250ms, 0.1), .rate_bits = told ? 50'000'000u : 0});
  two.flows.start(0, 1'000'000'000);
  two.pair.run_for(15s / kSlow);
  // Every other packet at most, for nearly all of them follow a gap.
  CHECK(two.pair.node_a.packets_sent() < two.pair.node_b.packets_sent() / 2);
  CHECK(two.flows.all_right());
}

TEST_CASE(
    "a flow on a quiet carrier gets the line's rate within a few round trips, without a configured rate") {
  const std::uint64_t seed = GENERATE(111, 112, 113);
  const Duration rtt = GENERATE(30ms, 100ms, 250ms);
  INFO("seed " << seed << ", " << seconds(rtt) << " s");
  Simulation two({.seed = seed, .line = line_of(50, rtt)});
  REQUIRE(two.pair.run_until([&] { return two.pair.up(); }, 5s));
  two.pair.run_for(2s);
  two.flows.start(0, 1'000'000'000);
  two.pair.run_for(8 * rtt);
  const std::uint64_t before = two.pair.node_b.bytes_sent();
  two.pair.run_for(2 * rtt);
  CHECK(static_cast<double>(two.pair.node_b.bytes_sent() - before) * 8 / seconds(2 * rtt) > 0.8 * 50e6);
}

TEST_CASE("difficult lines are filled and carry every byte", "[lines]") {
  struct Hard {
    const char* name;
    double megabits;
    Duration rtt;
    double loss, told_share, measured_share;
    Duration time;
  };
  // What share of rate x (1 - loss) x payload share a download gets, start-up not counted. The goals proper
  // are in tests/bench/simulated; here is what a short run on a test's budget must reach.
  const auto [name, megabits, rtt, loss, told_share, measured_share, time] = GENERATE(
      Hard{"GEO", 50, 600ms, 0.02, 0.8, 0.3, 20s}, Hard{"very lossy", 100, 200ms, 0.2, 0.6, 0.05, 12s},
      Hard{"OC-1", 51.84, 250ms, 0.01, 0.9, 0.5, 15s}, Hard{"clean", 100, 100ms, 0, 0.9, 0.7, 10s});
  const bool told = GENERATE(true, false);
  if (kSlow > 1 && !told) return;
  const std::uint64_t seed = 91;
  INFO("seed " << seed << ", " << name << (told ? ", told" : ", measured"));
  const auto rate = static_cast<std::uint64_t>(megabits * 1e6);
  Simulation two({.seed = seed, .line = line_of(megabits, rtt, loss), .rate_bits = told ? rate : 0});
  Flow& flow = two.flows.start(0, static_cast<std::uint64_t>(megabits * 1e6 / 8 * 2 * seconds(time)));
  const Duration warm_up = std::max<Duration>(3s, 12 * rtt);
  two.pair.run_for(warm_up);
  const std::uint64_t before = flow.client_reads.read;
  two.pair.run_for(time / (kSlow > 1 ? 4 : 1));
  const double got =
      static_cast<double>(flow.client_reads.read - before) * 8 / seconds(time / (kSlow > 1 ? 4 : 1));
  CHECK(flow.right());
  CHECK(got / (megabits * 1e6 * (1 - loss) * kPayloadShare) > (told ? told_share : measured_share));
}
