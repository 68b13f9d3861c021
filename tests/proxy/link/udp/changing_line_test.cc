// SPDX-License-Identifier: Apache-2.0
// Random schedules of changes of a line under two sessions over UDP carriers, from a seed each: every byte is
// right, nothing stops for good, memory is bounded. bench_simulated measures the speed.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "../simulated_flow.h"
#include "simulated_udp_pair.h"
#include "tests/sweep.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;

namespace {

constexpr std::uint64_t kChangingMemory = 1 << 20;  // credit of a side, and what it keeps for repetition
constexpr Duration kGoesOnWithin = 60s;             // after the last change
constexpr Duration kEndsWithin = 120s;              // what was accepted before

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  bool one_in(std::uint64_t n) { return random_() % n == 0; }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  double between(double least, double most) {
    return least + (most - least) * static_cast<double>(random_() % 10'000) / 10'000;
  }
  std::chrono::microseconds ms(double least, double most) {
    return std::chrono::microseconds(static_cast<std::int64_t>(1000 * between(least, most)));
  }

 private:
  std::mt19937_64 random_;
};

// What one direction may become; the next change begins from it.
void change_something(Dice& dice, simulator::DirectionConfig& direction) {
  wan::LinkConfig& link = direction.link;
  switch (dice.below(12)) {
    case 0:
    case 1:
      link.delay = dice.one_in(3) ? dice.ms(100, 600) : dice.ms(5, 100);
      break;
    case 2:
    case 3:
      link.rate_bits =
          static_cast<std::uint64_t>(1e6 * (dice.one_in(2) ? dice.between(1, 5) : dice.between(5, 50)));
      break;
    case 4:
      link.loss = dice.one_in(2) ? 0 : dice.between(0, 0.2);
      break;
    case 5:
      link.burst_loss.reset();
      if (dice.one_in(2)) link.burst_loss = wan::BurstLoss{.enter = 0.01, .leave = dice.between(0.1, 0.5)};
      break;
    case 6:
      link.jitter = dice.one_in(2) ? Duration{0} : Duration(dice.ms(0, 5));
      break;
    case 7:
      link.reorder = dice.one_in(2) ? 0 : dice.between(0, 0.05);
      link.reorder_by = dice.ms(1, 30);
      break;
    case 8:
      link.duplicate = dice.one_in(2) ? 0 : 0.02;
      direction.corrupt = dice.one_in(2) ? 0 : 0.01;
      break;
    case 9: {
      using Kind = wan::AqmConfig::Kind;
      link.aqm.reset();
      if (dice.one_in(2))
        link.aqm = wan::AqmConfig{
            .kind = std::array{Kind::codel, Kind::fq_codel, Kind::pie, Kind::red}[dice.below(4)]};
      break;
    }
    case 10:
      direction.policer.reset();
      if (dice.one_in(2))
        direction.policer = simulator::Policer{
            .rate_bits = static_cast<std::uint64_t>(1e6 * dice.between(1, 20)), .burst_bytes = 65'536};
      break;
    case 11:
      link.queue_bytes = static_cast<std::uint64_t>(
          1000 * (dice.one_in(2) ? dice.between(20, 100) : dice.between(100, 2000)));
      direction.mtu_bytes = dice.one_in(2) ? 1500 : static_cast<std::uint32_t>(1280 + dice.below(200));
      break;
  }
  link.jitter = std::min(link.jitter, link.delay);
}

struct ChangingPair {
  explicit ChangingPair(const UdpPairOptions& options) : pair(options), flows(pair) {}

  void check_invariants() const {
    REQUIRE(flows.all_right());
    for (const UdpEnd* side : {&pair.a, &pair.b}) {
      REQUIRE_FALSE(side->error);
      REQUIRE(side->pool.granted_bytes() <= kChangingMemory);
      // A stream may write a last piece beyond its part.
      REQUIRE(side->retained.used_bytes() <= kChangingMemory + 256 * 1024);
    }
  }
  std::uint64_t bytes_read() const {
    std::uint64_t bytes = 0;
    for (const auto& [id, flow] : flows.flows()) bytes += flow.client_reads.read + flow.server_reads.read;
    return bytes;
  }
  // Ends what would go on without end, and forgets what has been read to its end before.
  void end(Flow& flow) {
    flow.client_writes.total = flow.client_writes.written;
    flow.server_writes.total = flow.server_writes.written;
    for (UdpEnd* side : {&pair.a, &pair.b}) {
      Stream* stream = side->session.find(flow.id);
      if (!stream) continue;
      (side == &pair.a ? flow.client_writes : flow.server_writes).pump(*stream);
      if ((side == &pair.a ? flow.client_reads : flow.server_reads).ended) side->session.release(flow.id);
    }
    pair.wake();
  }

  UdpPair pair;
  FlowsOn<UdpPair> flows;
};

void run_schedule(std::uint64_t seed) {
  INFO("seed " << seed << " (SEED=" << seed << " test_proxy \"[changing-many]\" repeats it)");
  Dice dice(seed);
  UdpPairOptions options{.seed = seed,
                         .line = line_of(dice.between(1, 50), dice.ms(2, 200)),
                         .credit_bytes = kChangingMemory,
                         .retained_bytes = kChangingMemory,
                         .max_streams = 16};
  if (dice.one_in(2)) options.rate_bits = options.line.a_to_b.link.rate_bits;
  ChangingPair two(options);
  REQUIRE(two.pair.run_until([&] { return two.pair.up(); }, 30s));
  constexpr std::uint64_t kNoEnd = std::uint64_t{1} << 40;
  Flow& download = two.flows.start(0, kNoEnd);
  Flow& upload = two.flows.start(kNoEnd, 1000);
  simulator::LineConfig line = options.line;
  std::uint16_t port = 2000;
  for (std::uint64_t left = 5 + dice.below(15); left > 0; --left) {
    for (std::uint64_t changes = 1 + dice.below(3); changes > 0; --changes) {
      if (dice.one_in(2)) change_something(dice, line.a_to_b);
      if (dice.one_in(2)) change_something(dice, line.b_to_a);
    }
    two.pair.line.a_to_b().change(line.a_to_b);
    two.pair.line.b_to_a().change(line.b_to_a);
    if (dice.one_in(6)) {
      two.pair.line.cut();
      two.pair.run_for(dice.ms(100, dice.one_in(5) ? 15'000 : 2'000));
      two.pair.line.restore();
    }
    if (dice.one_in(12)) two.pair.node_a.readdress({two.pair.address_a.host, ++port});
    if (dice.one_in(3)) two.flows.start(dice.below(100'000), dice.below(100'000));
    two.pair.run_for(dice.ms(50, 1500));
    two.check_invariants();
  }
  const std::uint64_t down = download.client_reads.read, up = upload.server_reads.read;
  const bool goes_on = two.pair.run_until(
      [&] { return download.client_reads.read > down && upload.server_reads.read > up; }, kGoesOnWithin);
  CHECK(goes_on);
  two.check_invariants();
  two.end(download);
  two.end(upload);
  CHECK(two.pair.run_until([&] { return two.flows.all_complete(); }, kEndsWithin));
  two.check_invariants();
  const auto forgotten = [&] {
    return two.pair.a.session.state().live_streams == 0 && two.pair.b.session.state().live_streams == 0 &&
           two.pair.a.retained.used_bytes() == 0 && two.pair.b.retained.used_bytes() == 0;
  };
  CHECK(two.pair.run_until(forgotten, kGoesOnWithin));
}

std::uint64_t number_given(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace

TEST_CASE("whatever a line becomes, bytes are right and go on soon after the last change") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
  const std::uint64_t kSchedules = test::whole_sweeps() ? 40 : 12;
#else
  constexpr std::uint64_t kSchedules = 300;
#endif
  for (std::uint64_t seed = 1; seed <= kSchedules; ++seed) run_schedule(seed);
}

// SEED=first COUNT=schedules
TEST_CASE("the same with many more schedules", "[.][changing-many]") {
  const std::uint64_t first = number_given("SEED", 1), count = number_given("COUNT", 1);
  for (std::uint64_t seed = first; seed < first + count; ++seed) run_schedule(seed);
}
