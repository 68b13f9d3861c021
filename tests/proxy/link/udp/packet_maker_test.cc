// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/packet_maker.h"

#include <catch2/catch.hpp>

#include "packet_parts.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

TEST_CASE("a carrier with nothing to say makes no packets, and a path that is not up sends no data") {
  PacketParts at;
  CHECK(at.make(kStart) == 0);
  CHECK(at.maker.packets_sent() == 0);
  CHECK_FALSE(at.maker.ack_at());
  at.come_up();
  CHECK(at.make(kStart) > 0);  // what a session says first
}

TEST_CASE("a probe is as large as asked for, and counts as in flight") {
  PacketParts at;
  Buffer out;
  REQUIRE(at.maker.make_probe(1400, PacketKind::mtu_probe, out, kStart));
  CHECK(out.size() == 1400);
  CHECK(at.flight.bytes_against_window() == 0);  // it says nothing about what the line holds
  out.clear();
  REQUIRE(at.maker.make_probe(200, PacketKind::data, out, kStart));
  CHECK(out.size() == 200);
  CHECK(at.flight.bytes_against_window() == 228);  // with UDP's and IP's heads
}

TEST_CASE("what came is acknowledged when that is due, by a packet that asks for nothing itself") {
  PacketParts at;
  at.received.on_packet(5_packet, AckAsk::at_once, kStart);
  REQUIRE(at.maker.ack_at());
  CHECK(*at.maker.ack_at() <= kStart);
  const std::size_t size = at.make(kStart);
  CHECK(size > 0);
  CHECK(size < 100);
  CHECK(at.flight.sent().bytes_in_flight() == 0);
  CHECK(at.make(kStart) == 0);  // once
}

TEST_CASE(
    "probes that are owed leave whatever waits, each asks for an acknowledgement, and a failure ends them") {
  PacketParts at;
  at.come_up();
  while (at.make(kStart) > 0) {
  }
  at.maker.owe_probes(2);
  at.maker.owe_probes(1);  // the larger number counts
  const auto before = at.flight.sent().bytes_in_flight();
  CHECK(at.make(kStart) > 0);
  CHECK(at.flight.sent().bytes_in_flight() > before);
  CHECK(at.make(kStart) > 0);
  CHECK(at.make(kStart) == 0);
  at.maker.owe_probe();
  at.maker.on_failed();
  CHECK(at.make(kStart) == 0);
}

TEST_CASE("packets stay within the room they get, however small") {
  for (std::size_t limit = kPacketOverhead + 60; limit < kPacketOverhead + 400; limit += 7) {
    PacketParts at;
    at.come_up();
    at.received.on_packet(5_packet, AckAsk::at_once, kStart);
    for (int i = 0; i < 10; ++i) {
      Buffer out(3, std::byte{1});  // behind other packets of the batch
      if (!at.maker.make(limit, out, kStart)) {
        CHECK(out.size() == 3);
        break;
      }
      CHECK(out.size() <= limit + 3);
      CHECK(out[2] == std::byte{1});
    }
  }
}

TEST_CASE("with worn-out keys nothing leaves, and nothing is counted") {
  PacketParts at({.numbers = 2});
  at.send();
  at.send();
  CHECK_FALSE(at.maker.keys_worn_out());
  const auto bytes = at.maker.bytes_sent();
  Buffer out(kPacketHeaderBytes);
  write_filler(CarrierFrameType::probe, 2, out);
  CHECK_FALSE(at.maker.make_from(out, kStart));
  CHECK(out.empty());
  CHECK(at.maker.keys_worn_out());
  CHECK(at.maker.packets_sent() == 2);
  CHECK(at.maker.bytes_sent() == bytes);
}
