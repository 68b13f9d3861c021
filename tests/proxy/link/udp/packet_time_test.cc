// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/packet_time.h"

#include <catch2/catch.hpp>

using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {
void packet_arrived(PacketTime& time, std::uint32_t bytes, longhaul::link::Duration delay) {
  RateSample sample;
  sample.packet_bytes = bytes;
  sample.forward_delay = delay;
  time.on_sample(sample);
}
}  // namespace

TEST_CASE("a slow line is known by the delays of a small and a large packet") {
  PacketTime time;
  CHECK_FALSE(time.rate());
  packet_arrived(time, 100, 40ms);
  CHECK_FALSE(time.rate());
  packet_arrived(time, 1300, 190ms);
  REQUIRE(time.rate());
  CHECK(*time.rate() == Approx(8000));
  packet_arrived(time, 1300, 900ms);  // behind others
  packet_arrived(time, 600, 10ms);    // neither small nor large
  CHECK(*time.rate() == Approx(8000));
}

TEST_CASE("packets of all sizes that take about as long do not show a slow line") {
  PacketTime time;
  packet_arrived(time, 100, 40ms);
  packet_arrived(time, 1300, 45ms);
  CHECK_FALSE(time.rate());
  packet_arrived(time, 1300, 39ms);
  CHECK_FALSE(time.rate());
}
