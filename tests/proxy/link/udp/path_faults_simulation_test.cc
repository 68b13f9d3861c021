// SPDX-License-Identifier: Apache-2.0
// A session over two lines of which one fails in a particular way, or that flows use in different ways. Lines
// that fail at random are in path_sharing_simulation_test.cc.
#include <catch2/catch.hpp>

#include "../simulated_flow.h"
#include "simulated_paths.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;
using config::PathPolicy;
using config::PathUse;

namespace {

PathOptions faulty_path(double megabits, Duration rtt) {
  return {.line = line_of(megabits, rtt), .rate_bits = static_cast<std::uint64_t>(megabits * 1e6)};
}

OpenRequest asking(PathUse use) {
  OpenRequest request = FlowsOn<PathsPair>::simple_request();
  request.features.paths = use;
  return request;
}

struct FaultyLines {
  explicit FaultyLines(const PathsOptions& options) : pair(options), flows(pair) {}
  void come_up() {
    REQUIRE(pair.run_until([&] { return pair.up(); }, 5s));
  }
  std::uint64_t sent_by_b(std::size_t line) const {
    return pair.b.lines[line]->carrier.counters().bytes_sent;
  }
  void check_right() const {
    CHECK(flows.all_right());
    CHECK_FALSE(pair.a.error);
    CHECK_FALSE(pair.b.error);
  }
  void check_complete(Duration patience) {
    REQUIRE(pair.run_until([&] { return flows.all_complete(); }, patience));
    check_right();
    pair.run_for(5s);
    for (PathsEnd* end : {&pair.a, &pair.b}) {
      CHECK(end->session.state().live_streams == 0);
      CHECK(end->retained.used_bytes() == 0);
    }
  }

  PathsPair pair;
  FlowsOn<PathsPair> flows;
};

// Messages from b to a, and the longest delay of one.
class Messages {
 public:
  Messages(FaultyLines& two, Duration interval) : two_(two), flow_(two.flows.start_open()) {
    flow_.client_reads.on_read = [this] {
      for (; read_ + kBytes <= flow_.client_reads.read; read_ += kBytes) {
        longest_ = std::max(longest_, two_.pair.now() - written_.front());
        written_.pop_front();
      }
    };
    two_.pair.network().every(interval, [this] {
      Stream* stream = two_.pair.b.session.find(flow_.id);
      if (!stream || !stream->begun()) return;
      flow_.server_writes.total += kBytes;
      written_.push_back(two_.pair.now());
      flow_.server_writes.pump(*stream);
      two_.pair.wake();
    });
  }
  // Since the last call, and that of a message that is still under way.
  Duration take_longest() {
    const Duration waiting = written_.empty() ? Duration{0} : two_.pair.now() - written_.front();
    return std::max(std::exchange(longest_, Duration{0}), waiting);
  }

 private:
  static constexpr std::uint64_t kBytes = 200;
  FaultyLines& two_;
  Flow& flow_;
  std::deque<TimePoint> written_;
  std::uint64_t read_ = 0;
  Duration longest_{0};
};

}  // namespace

TEST_CASE("paths: flows that ask for a policy get it, whatever the peer's is") {
  const auto policy = GENERATE(PathPolicy::sum, PathPolicy::best, PathPolicy::failover);
  const auto use = GENERATE(PathUse::automatic, PathUse::sum, PathUse::best, PathUse::failover);
  INFO("policy " << static_cast<int>(policy) << ", asked for " << static_cast<int>(use));
  FaultyLines two({.paths = {faulty_path(20, 90ms), faulty_path(20, 20ms)}, .policy = policy});
  two.come_up();
  two.pair.run_for(3s);
  const std::uint64_t before[] = {two.sent_by_b(0), two.sent_by_b(1)};
  two.flows.start(0, 3'000'000, asking(use));
  two.check_complete(60s);
  const std::uint64_t first = two.sent_by_b(0) - before[0], fastest = two.sent_by_b(1) - before[1];
  INFO(first << " and " << fastest << " bytes");
  // Acknowledgements and probes of the other path.
  constexpr std::uint64_t kNothing = 100'000;
  const PathPolicy in_force = config::policy_for(use, policy);
  CHECK((first > kNothing) == (in_force != PathPolicy::best));
  CHECK((fastest > kNothing) == (in_force != PathPolicy::failover));
}

TEST_CASE("paths: flows that ask for a line that fails continue on the other one, and return") {
  FaultyLines two({.paths = {faulty_path(20, 90ms), faulty_path(20, 20ms)}});
  two.come_up();
  two.pair.run_for(2s);
  Flow& flow = two.flows.start(1'000'000, 20'000'000, asking(PathUse::failover));
  two.pair.run_for(1s);
  CHECK(two.pair.b.shares.first == std::optional<std::size_t>(0));
  two.pair.lines[0]->cut();
  two.pair.run_for(2s);
  CHECK(two.pair.b.shares.first == std::optional<std::size_t>(1));
  const std::uint64_t read = flow.client_reads.read;
  two.pair.run_for(500ms);
  CHECK(flow.client_reads.read > read);
  two.pair.lines[0]->restore();
  two.pair.run_for(5s);
  CHECK(two.pair.b.shares.first == std::optional<std::size_t>(0));
  two.check_complete(60s);
}

TEST_CASE("paths: when its path fails, a message loses a round trip and 50 ms at most") {
  enum class Dead { both, messages, answers };
  const auto dead = GENERATE(Dead::both, Dead::messages, Dead::answers);
  const auto interval = GENERATE(Duration(5ms), Duration(20ms), Duration(300ms));
  const auto policy = GENERATE(PathPolicy::sum, PathPolicy::failover);
  for (int phase = 0; phase < 10; ++phase) {
    FaultyLines two({.seed = static_cast<std::uint64_t>(phase + 1),
               .paths = {faulty_path(30, 100ms), faulty_path(20, 120ms)},
               .policy = policy});
    two.come_up();
    Messages messages(two, interval);
    two.pair.run_for(2s);
    messages.take_longest();
    two.pair.run_for(1s);
    const Duration usual = messages.take_longest();
    two.pair.run_for(std::min<Duration>(interval, 100ms) * phase / 10);
    simulator::Line& line = *two.pair.lines[0];
    if (dead != Dead::messages) line.a_to_b().cut();
    if (dead != Dead::answers) line.b_to_a().cut();
    two.pair.run_for(2s);
    const Duration lost = messages.take_longest() - usual;
    INFO("seed " << phase + 1 << ", dead " << static_cast<int>(dead) << ": " << lost / 1ms << " ms lost");
    CHECK(lost <= 100ms + 50ms);
    two.check_right();
  }
}

TEST_CASE("paths: lines that work by turns of a second deliver messages and every byte") {
  FaultyLines two({.paths = {faulty_path(20, 40ms), faulty_path(20, 60ms)}});
  two.come_up();
  two.flows.start(500'000, 6'000'000);
  Messages messages(two, 50ms);
  two.pair.run_for(2s);
  for (int turn = 0; turn < 20; ++turn) {
    two.pair.lines[turn % 2]->restore();
    two.pair.lines[(turn + 1) % 2]->cut();
    messages.take_longest();
    two.pair.run_for(1s);
    // Found by a probe that the silence of the other one causes: no retry timer is as short.
    INFO("turn " << turn);
    CHECK(messages.take_longest() < 300ms);
  }
  for (simulator::Line* line : two.pair.lines) line->restore();
  two.pair.run_for(20s);
  two.check_right();
  CHECK(two.pair.a.session.state().live_streams == 1);  // that of the messages
}

TEST_CASE("paths: a line that flaps every second is left to stand by, and the other one carries") {
  const auto policy = GENERATE(PathPolicy::sum, PathPolicy::best, PathPolicy::failover);
  FaultyLines two({.paths = {faulty_path(20, 40ms), faulty_path(20, 60ms)}, .policy = policy});
  two.come_up();
  two.flows.start(500'000, 10'000'000);
  two.pair.run_for(1s);
  const int changes = two.pair.b.changes;
  for (int turn = 0; turn < 40; ++turn) {
    turn % 2 ? two.pair.lines[0]->restore() : two.pair.lines[0]->cut();
    two.pair.run_for(1s);
  }
  // After each failure it waits twice as long, and it never works for two seconds.
  CHECK(two.pair.b.changes - changes <= 3);
  two.pair.lines[0]->restore();
  two.check_complete(60s);
}

TEST_CASE("paths: a line that works in one direction only is used by neither side") {
  const bool to_b = GENERATE(false, true);
  const auto policy = GENERATE(PathPolicy::sum, PathPolicy::failover);
  FaultyLines two({.paths = {faulty_path(20, 40ms), faulty_path(20, 60ms)}, .policy = policy});
  two.come_up();
  two.flows.start(3'000'000, 6'000'000);
  two.pair.run_for(500ms);
  simulator::Line& line = *two.pair.lines[0];
  (to_b ? line.b_to_a() : line.a_to_b()).cut();
  two.pair.run_for(1s);
  for (PathsEnd* end : {&two.pair.a, &two.pair.b})
    CHECK(end->shares.preferred == std::optional<std::size_t>(1));
  two.check_complete(60s);
}

TEST_CASE("paths: a line that carries no packets of the least size never works") {
  PathOptions narrow = faulty_path(20, 40ms);
  narrow.line.a_to_b.mtu_bytes = narrow.line.b_to_a.mtu_bytes = 576;
  FaultyLines two({.paths = {narrow, faulty_path(20, 60ms)}});
  REQUIRE(two.pair.run_until([&] { return two.pair.b.shares.preferred && two.pair.a.shares.preferred; }, 5s));
  two.flows.start(3'000'000, 10'000'000);
  for (int second = 0; second < 20; ++second) {
    two.pair.run_for(1s);
    for (PathsEnd* end : {&two.pair.a, &two.pair.b}) {
      CHECK(end->lines[0]->carrier.state() != udp::UdpCarrier::State::up);
      CHECK(end->shares.preferred == std::optional<std::size_t>(1));
    }
  }
  two.check_complete(10s);
}

TEST_CASE("paths: a line that carries small packets alone is left by a side that sends larger ones") {
  FaultyLines two({.paths = {faulty_path(20, 40ms), faulty_path(20, 60ms)}});
  two.come_up();
  two.flows.start(3'000'000, 10'000'000);
  Messages messages(two, 50ms);  // small ones, whose acknowledgements alone would show a path that works
  two.pair.run_for(1s);
  for (simulator::Direction* direction : {&two.pair.lines[0]->a_to_b(), &two.pair.lines[0]->b_to_a()}) {
    simulator::DirectionConfig config = direction->config();
    config.mtu_bytes = 576;
    direction->change(config);
  }
  two.pair.run_for(5s);
  CHECK(two.pair.b.shares.preferred == std::optional<std::size_t>(1));
  messages.take_longest();
  two.pair.run_for(5s);
  CHECK(messages.take_longest() < 200ms);
  Flow& upload = two.flows.start(3'000'000, 0);
  two.pair.run_for(5s);
  CHECK(two.pair.a.shares.preferred == std::optional<std::size_t>(1));
  CHECK(upload.complete());
  CHECK(two.pair.a.session.state().live_streams == 1);
  two.check_right();
}

TEST_CASE("paths: packets that are replayed on the other line, whole or with its id, change nothing") {
  FaultyLines two({.paths = {faulty_path(20, 40ms), faulty_path(20, 60ms)}});
  two.come_up();
  simulator::Line& other = *two.pair.lines[1];
  const simulator::Address from{0x0a000004, 7600}, to{0x0a000003, 1000};  // of the second path
  const auto id = two.pair.a.lines[1]->carrier.own_id();
  int replayed = 0;
  std::vector<Buffer> seen;
  two.pair.lines[0]->b_to_a().tap([&](const simulator::Datagram& datagram) {
    if (seen.size() < 2000) seen.emplace_back(datagram.payload.begin(), datagram.payload.end());
  });
  two.pair.network().every(1ms, [&] {
    for (Buffer& packet : seen) {
      other.b_to_a().enter(from, to, packet, static_cast<std::uint32_t>(packet.size() + 28));
      std::ranges::copy(std::as_bytes(std::span(id.bytes)), packet.begin() + 1);
      other.b_to_a().enter(from, to, packet, static_cast<std::uint32_t>(packet.size() + 28));
      ++replayed;
    }
    seen.clear();
  });
  const UdpAddress peer = two.pair.a.lines[0]->carrier.peer();
  two.flows.start(2'000'000, 10'000'000);
  two.pair.run_for(3s);
  CHECK(replayed > 100);
  CHECK(two.pair.a.lines[1]->carrier.counters().packets_dropped > 100);
  CHECK(two.pair.a.lines[0]->carrier.peer() == peer);
  two.pair.lines[0]->b_to_a().tap({});
  two.check_complete(60s);
}

TEST_CASE("paths: a path that comes back has the rate and the round trip that it had") {
  const bool measured = GENERATE(false, true);
  PathOptions lossless = faulty_path(20, 40ms);
  if (measured) lossless.rate_bits = 0;
  FaultyLines two({.paths = {lossless, faulty_path(20, 60ms)}, .policy = PathPolicy::failover});
  two.come_up();
  two.flows.start(0, 60'000'000);
  two.pair.run_for(6s);
  const auto& carrier = two.pair.b.lines[0]->carrier;
  const auto rate = 8 * static_cast<double>(carrier.rate().bytes_per_second());
  const Duration rtt = carrier.rtt().lasting_minimum();
  CHECK(rate > 15e6);
  two.pair.lines[0]->cut();
  two.pair.run_for(4s);
  CHECK(two.pair.b.shares.preferred == std::optional<std::size_t>(1));
  two.pair.lines[0]->restore();
  REQUIRE(
      two.pair.run_until([&] { return two.pair.b.shares.preferred == std::optional<std::size_t>(0); }, 30s));
  INFO(rate << " before, " << 8 * carrier.rate().bytes_per_second() << " after");
  CHECK(8 * static_cast<double>(carrier.rate().bytes_per_second()) > 0.7 * rate);
  CHECK(carrier.rtt().lasting_minimum() < rtt + 5ms);
  two.check_right();
}
