// SPDX-License-Identifier: Apache-2.0
// A session over two lines that are cut, flap, and lose packets: every byte is compared, and no flow is lost.
#include <catch2/catch.hpp>

#include "../simulated_flow.h"
#include "simulated_paths.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;
using config::PathPolicy;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
constexpr std::uint64_t kSlowBuild = 4;
#else
constexpr std::uint64_t kSlowBuild = 1;
#endif

const config::Features kWithoutRepairs{.fec = {.mode = config::Fec::Mode::off}};

PathOptions path_of(double megabits, Duration rtt, double loss = 0) {
  return {.line = line_of(megabits, rtt, loss), .rate_bits = static_cast<std::uint64_t>(megabits * 1e6)};
}

struct Lines {
  explicit Lines(const PathsOptions& options) : pair(options), flows(pair) {
    REQUIRE(pair.run_until([&] { return pair.up(); }, 5s));
  }
  // Bytes that arrived at the client in that time.
  std::uint64_t arrived_in(const Flow& flow, Duration time) {
    const std::uint64_t before = flow.client_reads.read;
    pair.run_for(time);
    return flow.client_reads.read - before;
  }
  void check_complete(Duration patience) {
    REQUIRE(pair.run_until([&] { return flows.all_complete(); }, patience));
    CHECK(flows.all_right());
    pair.run_for(5s);
    for (PathsEnd* end : {&pair.a, &pair.b}) {
      CHECK(end->session.state().live_streams == 0);
      CHECK(end->retained.used_bytes() == 0);
      CHECK_FALSE(end->error);
    }
  }
  PathsPair pair;
  FlowsOn<PathsPair> flows;
};

double in_megabits(std::uint64_t bytes, Duration in) {
  return static_cast<double>(bytes) * 8e-6 / std::chrono::duration<double>(in).count();
}

}  // namespace

TEST_CASE("paths: sum carries a transfer at nearly the rates of both lines together") {
  const std::uint64_t seed = GENERATE(1, 2);
  INFO("seed " << seed);
  Lines two({.seed = seed,
             .paths = {path_of(30, 40ms), path_of(20, 90ms)},
             .policy = PathPolicy::sum,
             .features = kWithoutRepairs});
  Flow& flow = two.flows.start(0, 60'000'000 / kSlowBuild);
  two.pair.run_for(1s);
  const double rate = in_megabits(two.arrived_in(flow, 1s), 1s);
  INFO(rate << " Mbit/s");
  CHECK(two.pair.b.shares.preferred == std::optional<std::size_t>(0));
  CHECK(rate > 0.85 * 50);
  two.check_complete(60s);
}

TEST_CASE("paths: best and failover use one line, and the other one stands by") {
  const auto policy = GENERATE(PathPolicy::best, PathPolicy::failover);
  Lines two({.paths = {path_of(20, 90ms), path_of(20, 20ms)}, .policy = policy, .features = kWithoutRepairs});
  two.pair.run_for(2s);  // whichever line came up first has been left by then
  const std::size_t used = policy == PathPolicy::best ? 1 : 0;
  const auto& other = two.pair.b.lines[1 - used]->carrier;
  const std::uint64_t before = other.counters().bytes_sent;
  Flow& flow = two.flows.start(0, 8'000'000 / kSlowBuild);
  two.pair.run_for(500ms);
  CHECK(two.pair.b.shares.preferred == std::optional<std::size_t>(used));
  CHECK(two.pair.b.shares.helpers.empty());
  CHECK(flow.client_reads.read > 100'000);
  CHECK(other.counters().bytes_sent - before < 20'000);
  two.check_complete(60s);
}

TEST_CASE("paths: while a line is cut a transfer goes on over the other one") {
  const auto policy = GENERATE(PathPolicy::sum, PathPolicy::best, PathPolicy::failover);
  const std::size_t cut = GENERATE(0, 1);
  INFO("policy " << static_cast<int>(policy) << ", cut " << cut);
  Lines two({.paths = {path_of(20, 40ms), path_of(20, 60ms)}, .policy = policy, .features = kWithoutRepairs});
  Flow& flow = two.flows.start(0, 40'000'000 / kSlowBuild);
  two.pair.run_for(1s);
  two.pair.lines[cut]->cut();
  const double first = in_megabits(two.arrived_in(flow, 1s), 1s);
  INFO(first << " Mbit/s in the first second");
  CHECK(first > 0.6 * 20);
  two.pair.lines[cut]->restore();
  two.check_complete(60s);
}

TEST_CASE("paths: a small message waits hardly longer than for a probe when its line is cut") {
  const auto policy = GENERATE(PathPolicy::sum, PathPolicy::best, PathPolicy::failover);
  Lines two({.paths = {path_of(20, 40ms), path_of(20, 60ms)}, .policy = policy, .features = kWithoutRepairs});
  Flow& flow = two.flows.start_open();
  two.pair.run_for(1s);
  two.pair.lines[0]->cut();
  flow.client_writes.total += 100;
  flow.client_writes.pump(*two.pair.a.session.find(flow.id));
  const TimePoint start = two.pair.now();
  REQUIRE(two.pair.run_until([&] { return flow.server_reads.read == 100; }, 2s));
  const Duration took = two.pair.now() - start;
  INFO(took / 1ms << " ms");
  CHECK(took < 30ms + 40ms + 110ms);
  CHECK(two.flows.all_right());
}

TEST_CASE("paths: with both lines cut for seconds nothing is lost either") {
  Lines two({.paths = {path_of(20, 40ms), path_of(20, 60ms)}, .features = kWithoutRepairs});
  two.flows.start(1'000'000, 20'000'000 / kSlowBuild);
  two.pair.run_for(1s);
  for (simulator::Line* line : two.pair.lines) line->cut();
  two.pair.run_for(4s);
  for (simulator::Line* line : two.pair.lines) line->restore();
  two.check_complete(60s);
}

TEST_CASE("paths: lines that flap, lose and reorder deliver every byte") {
  for (std::uint64_t seed = 1; seed <= 12 / kSlowBuild; ++seed) {
    std::mt19937_64 random(seed);
    PathsOptions options{.seed = seed,
                         .policy = static_cast<PathPolicy>(random() % 3),
                         .features = random() % 2 ? kWithoutRepairs : config::Features{}};
    for (int i = 0; i < 2; ++i) {
      PathOptions path =
          path_of(5 + static_cast<double>(random() % 30), std::chrono::milliseconds(5 + random() % 150),
                  static_cast<double>(random() % 6) / 100);
      path.line.b_to_a.link.reorder = static_cast<double>(random() % 5) / 100;
      path.line.b_to_a.link.reorder_by = std::chrono::milliseconds(random() % 20);
      if (random() % 2) path.rate_bits = 0;
      path.cost = 1 + static_cast<std::uint32_t>(random() % 2);
      options.paths.push_back(path);
    }
    INFO("seed " << seed);
    Lines two(options);
    for (int i = 0; i < 4; ++i) two.flows.start(random() % 500'000, random() % 4'000'000 / kSlowBuild);
    for (int i = 0; i < 12; ++i) {
      simulator::Line& line = *two.pair.lines[random() % 2];
      random() % 2 ? line.cut() : line.restore();
      two.pair.run_for(std::chrono::milliseconds(random() % 1000));
    }
    for (simulator::Line* line : two.pair.lines) line->restore();
    two.check_complete(300s);
  }
}
