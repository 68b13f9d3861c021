// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/delivery_meter.h"

#include <catch2/catch.hpp>
#include <deque>

#include "tests/proxy/link/start.h"

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {

// Packets that arrive in order, each acknowledged alone.
struct MeteredLine {
  void send(Duration at, const OutgoingPacket& packet = {.bytes = 1000}) {
    packets.push_back({kStart + at, meter.on_sent(packet, packets.size())});
  }
  // Of the oldest packet in flight.
  RateSample arrives(Duration at) {
    const Packet packet = packets.front();
    RateSample sample;
    meter.on_delivered(packet.stamp.bytes);
    meter.measure(packet.stamp, packet.sent, at, sample);
    packets.pop_front();
    meter.forget_before(packets.empty() ? nullptr : &packets.front().stamp);
    return sample;
  }

  struct Packet {
    TimePoint sent;
    DeliveryMeter::Stamp stamp;
  };
  DeliveryMeter meter;
  std::deque<Packet> packets;
};

}  // namespace

TEST_CASE("a steady line is measured as what arrives between two packets that are a train apart") {
  MeteredLine line;
  std::optional<DeliveryRate> found;
  for (int i = 0; i < 200; ++i) {
    line.send(i * 1ms);
    if (i < 50) continue;  // 50 ms from one end to the other
    const auto sample = line.arrives((i - 50) * 1ms);
    if (sample.delivery) found = sample.delivery;
  }
  REQUIRE(found);
  CHECK((found->arrival_interval >= DeliveryMeter::kMinTrain));
  CHECK(found->delivered_bytes == 1000u * static_cast<unsigned>(found->interval / 1ms));
  CHECK(found->dispatched_bytes == found->delivered_bytes);
  CHECK_FALSE(found->application_limited);
  CHECK(line.meter.round() > 1);
}

TEST_CASE("a slow line is measured by arrivals, a slow sender by when it sent") {
  const bool is_line_slow = GENERATE(true, false);
  MeteredLine line;
  for (int i = 0; i < 30; ++i) line.send(i * (is_line_slow ? 1ms : 4ms));
  std::optional<DeliveryRate> found;
  for (int i = 0; i < 30; ++i)
    if (const auto sample = line.arrives(i * (is_line_slow ? 4ms : 1ms)); sample.delivery)
      found = sample.delivery;
  REQUIRE(found);
  CHECK(found->dispatched_bytes == 1000u * static_cast<unsigned>(found->interval / 4ms));
}

TEST_CASE("a pause is not counted as the line's") {
  MeteredLine line;
  for (int i = 0; i < 30; ++i) line.send(i * 1ms);
  for (int i = 0; i < 30; ++i) (void)line.arrives(i * 1ms);
  line.meter.on_idle();
  for (int i = 0; i < 30; ++i) line.send(10s + i * 1ms);
  std::optional<DeliveryRate> found;
  for (int i = 0; i < 30; ++i) {
    const auto sample = line.arrives(10s + i * 1ms);
    if (i < 20) CHECK_FALSE(sample.delivery);
    if (i > 0 && i < 20) CHECK(sample.beginning);
    if (sample.delivery) found = sample.delivery;
  }
  REQUIRE(found);
  CHECK((found->interval < 1s));
}

TEST_CASE("while there is too little to send the rate is only a lower bound") {
  MeteredLine line;
  for (int i = 0; i < 30; ++i) line.send(i * 1ms, {.bytes = 1000, .application_limited = i > 5});
  std::optional<DeliveryRate> found;
  for (int i = 0; i < 30; ++i)
    if (const auto sample = line.arrives(i * 1ms); sample.delivery) found = sample.delivery;
  REQUIRE(found);
  CHECK(found->application_limited);
}

TEST_CASE("a packet that has only an ACK begins no measurement") {
  MeteredLine line;
  line.send(0ms, {.bytes = 50, .kind = PacketKind::ack_only});
  line.send(1ms);
  const auto stamp = line.packets.back().stamp;
  CHECK(stamp.dispatched == 1050);
  CHECK(stamp.mark == line.packets.front().stamp.mark + 1);
}
