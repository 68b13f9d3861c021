// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/start_phase.h"

#include <catch2/catch.hpp>

#include "tests/proxy/link/udp/phase_samples.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kStartPacket = 1500;

// The path's probes: a small packet, and a large one that takes this much longer.
void note_probes(StartPhase& start, Duration longer) {
  RateSample sample;
  sample.packet_bytes = 100;
  sample.forward_delay = 40ms;
  start.note(sample);
  sample.packet_bytes = 1300;
  sample.forward_delay = 40ms + longer;
  start.note(sample);
}

// 32 packets that arrive within this time.
RateSample train_within(Duration time) {
  RateSample sample{.now = kPhaseStart, .round = 1};
  sample.delivery = DeliveryRate{.delivered_bytes = 32 * kStartPacket,
                                 .dispatched_bytes = 32 * kStartPacket,
                                 .interval = time,
                                 .arrival_interval = time};
  return sample;
}

}  // namespace

TEST_CASE("the first packets of an unknown line are 32, and of a slow one what it carries in 0.4 s") {
  StartPhase fast(kStartPacket, 0);
  CHECK(fast.train_packets() == 32);
  note_probes(fast, 5ms);  // jitter
  CHECK(fast.train_packets() == 32);
  StartPhase slow(kStartPacket, 0);
  note_probes(slow, 40ms);  // 30 kB/s
  CHECK(slow.train_packets() == Approx(8));
  StartPhase slowest(kStartPacket, 0);
  note_probes(slowest, 1s);
  CHECK(slowest.train_packets() == 4);
}

TEST_CASE("the start goes no faster than is allowed, and than a quarter above what a slow line showed") {
  PhaseLine at;
  StartPhase free(kStartPacket, 0);
  const StartRamp::Step first = free.on_train(train_within(10ms), at.line);
  CHECK(first.next == StartRamp::Next::ramp);
  CHECK(first.rate == Approx(32 * kStartPacket / 0.010 / 2));
  StartPhase bounded(kStartPacket, 500'000);
  CHECK(bounded.on_train(train_within(10ms), at.line).rate <= 500'000);
  StartPhase slow(kStartPacket, 500'000);
  note_probes(slow, 40ms);
  CHECK(slow.on_train(train_within(10ms), at.line).rate <= 1.25 * 30'001);
}
