// SPDX-License-Identifier: Apache-2.0
// Random loss of every kind is not taken for a policer's, and a policer's is not taken for random loss.
#include "proxy/link/udp/loss_by_rate.h"

#include <catch2/catch.hpp>
#include <random>

using namespace longhaul::link::udp;

namespace {
using Level = LossByRate::Level;
constexpr std::int64_t kPacket = 1500;

// Sends so many packets over a line with random loss in bursts; a policer lets `rate_part` of the rate pass.
EpochTally send(std::mt19937& random, int packets, double loss, double burst, double passes) {
  std::uniform_real_distribution<double> chance;
  EpochTally tally;
  bool bad = false;
  bool lost_before = false;
  double tokens = 0;
  for (int i = 0; i < packets; ++i) {
    bad = bad ? chance(random) > 1 / burst : chance(random) < loss / (1 - loss) / burst;
    tokens = std::min(tokens + passes, 4.0);
    const bool policed = tokens < 1;
    if (!policed) tokens -= 1;
    if (bad || policed) {
      tally.lost_bytes += kPacket;
      if (!lost_before) ++tally.loss_runs;
    } else {
      tally.acked_bytes += kPacket;
    }
    lost_before = bad || policed;
  }
  return tally;
}

// How often it is said that loss depends on the rate, of 1000 lines.
int verdicts(double loss, double burst, double passes) {
  std::mt19937 random{11};
  int said = 0;
  for (int i = 0; i < 1000; ++i) {
    LossByRate losses{kPacket};
    losses.add(Level::normal, 100, send(random, 1000, loss, burst, passes));
    const double gain = LossByRate::trial_gain(losses.total_loss());
    losses.add(Level::low, 100 * gain, send(random, 300, loss, burst, passes / gain));
    said += losses.depends_on_rate();
  }
  return said;
}
}  // namespace

TEST_CASE("random loss is hardly ever taken for a policer, in bursts or not") {
  for (const double loss : {0.01, 0.05, 0.1, 0.2})
    for (const double burst : {1.001, 3.0, 10.0}) {
      INFO("loss " << loss << ", bursts of " << burst);
      CHECK(verdicts(loss, burst, 10) < 30);
    }
}

TEST_CASE("a policer with a lower rate is detected, also with random loss beside it") {
  for (const double loss : {0.0, 0.01, 0.05})
    for (const double passes : {0.5, 0.8}) {
      INFO("loss " << loss << ", lets " << passes << " pass");
      CHECK(verdicts(loss, 1.001, passes) > 950);
    }
}

TEST_CASE("a handful of packets decides nothing") {
  LossByRate losses{kPacket};
  losses.add(Level::normal, 100,
             {.acked_bytes = 100 * kPacket, .lost_bytes = 100 * kPacket, .loss_runs = 50});
  losses.add(Level::low, 75, {.acked_bytes = 30 * kPacket});
  CHECK_FALSE(losses.decided());
  CHECK_FALSE(losses.depends_on_rate());
}

TEST_CASE("packets that arrived after all count as no loss, and old losses count less") {
  LossByRate losses{kPacket};
  losses.add(Level::normal, 100, {.acked_bytes = 90 * kPacket, .lost_bytes = 10 * kPacket, .loss_runs = 10});
  losses.add(Level::normal, 100, {.acked_bytes = 10 * kPacket, .lost_bytes = -10 * kPacket});
  CHECK(losses.total_loss() == 0);
  losses.add(Level::normal, 100, {.acked_bytes = 900 * kPacket, .lost_bytes = 1000 * kPacket, .loss_runs = 1});
  CHECK(losses.total_loss() == Approx(0.5));
  losses.age(0.1);
  losses.add(Level::normal, 100, {.acked_bytes = 800 * kPacket});
  CHECK(losses.total_loss() == Approx(0.1));
}

TEST_CASE("enough of the packets at the usual rate are remembered to decide, however few come") {
  LossByRate losses(kPacket);
  for (int i = 0; i < 200; ++i) {
    losses.add(Level::normal, 10'000, {.acked_bytes = kPacket});
    losses.age();
  }
  CHECK(losses.enough(Level::normal));
  losses.add(Level::low, 5'000, {.acked_bytes = 100 * kPacket});
  losses.age();
  losses.age();
  CHECK_FALSE(losses.enough(Level::low));
}
