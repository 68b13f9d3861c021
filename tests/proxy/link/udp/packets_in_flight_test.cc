// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/packets_in_flight.h"

#include <catch2/catch.hpp>

#include "packet_parts.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {

// The session's first frames in one packet, as number 0.
struct InFlight : PacketParts {
  InFlight() {
    come_up();
    REQUIRE(make(kStart) > 0);
    REQUIRE_FALSE(session.outgoing().wants_to_transmit(id, kStart));
  }
  void acknowledge(PacketNumber first, PacketNumber last, TimePoint now) {
    PacketAck ack;
    ack.ranges.push_back({first, last});
    REQUIRE(flight.on_ack(ack, now, now));
  }
  fec::LossReport settle(TimePoint now) {
    const auto report = flight.settle(received, 0_packet, session.outgoing(), now);
    flight.events() = {};
    return report;
  }
  // Four more packets, and the peer acknowledges only those.
  void lose_first() {
    for (int i = 0; i < 4; ++i) send();
    acknowledge(1_packet, 4_packet, kStart + 50ms);
  }
  bool sends_again(TimePoint now) { return session.outgoing().wants_to_transmit(id, now); }
};

}  // namespace

TEST_CASE("what a lost packet carried is sent again") {
  InFlight at;
  at.lose_first();
  const auto report = at.settle(kStart + 50ms);
  CHECK(report.lost == 1);
  CHECK(report.delivered == 4);
  CHECK(report.bursts == 1);
  CHECK(at.sends_again(kStart + 50ms));
  CHECK(at.flight.sent().bytes_in_flight() == 0);
}

TEST_CASE("what the peer has restored is not sent again, but counts as lost") {
  InFlight at;
  at.flight.on_restored(0_packet);
  at.flight.on_restored(17_packet);  // never sent
  at.lose_first();
  CHECK(at.settle(kStart + 50ms).lost == 1);
  CHECK_FALSE(at.sends_again(kStart + 50ms));
}

TEST_CASE("a carrier that is abandoned gives everything back, once") {
  InFlight at;
  for (int i = 0; i < 4; ++i) at.send();
  at.flight.abandon(at.session.outgoing(), kStart + 1s);
  CHECK(at.sends_again(kStart + 1s));
  CHECK(at.flight.sent().bytes_in_flight() == 0);
  CHECK(at.flight.bytes_against_window() == 0);
  // An acknowledgement that comes late changes nothing.
  at.flight.events() = {};
  at.acknowledge(0_packet, 4_packet, kStart + 2s);
  at.settle(kStart + 2s);
  CHECK(at.flight.bytes_against_window() == 0);
}

TEST_CASE("probes for larger packets leave the window alone, whether they arrive or not") {
  for (const bool arrives : {true, false}) {
    InFlight at;
    at.acknowledge(0_packet, 0_packet, kStart + 10ms);
    at.settle(kStart + 10ms);
    Buffer out;
    REQUIRE(at.maker.make_probe(1400, PacketKind::mtu_probe, out, kStart + 10ms));
    for (int i = 0; i < 4; ++i) at.send();
    const auto against = at.flight.bytes_against_window();
    CHECK(against == at.flight.sent().bytes_in_flight() - 1428);
    at.acknowledge(arrives ? 1_packet : 2_packet, 5_packet, kStart + 60ms);
    at.settle(kStart + 60ms);
    CHECK(at.flight.bytes_against_window() == 0);
  }
}

TEST_CASE("many large packets lost while small ones arrive are no black hole if a large one arrives too") {
  for (const bool large_arrives : {false, true}) {
    InFlight at;
    at.flight.mtu().on_probe_sent(1472, kStart);
    at.flight.mtu().on_probe_acked(1472, kStart);
    for (int i = 0; i < 8; ++i) {
      Buffer out;
      REQUIRE(at.maker.make_probe(1472, PacketKind::data, out, kStart));
    }
    for (int i = 0; i < 4; ++i) at.send();
    at.acknowledge(large_arrives ? 8_packet : 9_packet, 12_packet, kStart + 50ms);
    CHECK(at.settle(kStart + 50ms).lost >= 7);
    CHECK(at.flight.mtu().current() == (large_arrives ? 1472 : PathMtu::kBase));
  }
}

TEST_CASE("the newest packet with bytes of streams is repeated, until it is acknowledged") {
  for (const bool arrives : {true, false}) {
    InFlight at;
    at.send();  // a newer one, without
    if (arrives) {
      at.acknowledge(0_packet, 0_packet, kStart + 10ms);
      at.settle(kStart + 10ms);
    }
    at.flight.repeat_newest(at.session.outgoing(), kStart + 11ms);
    CHECK(at.sends_again(kStart + 11ms) == !arrives);
  }
}
