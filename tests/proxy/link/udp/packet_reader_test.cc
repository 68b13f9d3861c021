// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/packet_reader.h"

#include <catch2/catch.hpp>

#include "packet_parts.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {

using PacketReading = PacketParts;

Buffer together(const std::vector<Buffer>& frames) {
  Buffer out;
  for (const Buffer& frame : frames) out.insert(out.end(), frame.begin(), frame.end());
  return out;
}
Buffer ping_bytes() {
  Buffer out;
  write_frame(PingFrame{7}, out);
  return out;
}
Buffer filler_bytes(CarrierFrameType type, std::size_t size = 2) {
  Buffer out;
  write_filler(type, size, out);
  return out;
}

}  // namespace

TEST_CASE("each kind of frame asks for an acknowledgement as soon as it needs one") {
  PacketReading at;
  SECTION("padding and an unknown type, never") {
    REQUIRE(at.read(together({filler_bytes(CarrierFrameType::padding, 100),
                              filler_bytes(static_cast<CarrierFrameType>(0x2f), 30)})));
    CHECK(at.ask == AckAsk::none);
  }
  SECTION("a frame of the session, soon") {
    REQUIRE(at.read(ping_bytes()));
    CHECK(at.ask == AckAsk::soon);
  }
  SECTION("a probe, at once, whatever follows it") {
    REQUIRE(at.read(together({filler_bytes(CarrierFrameType::probe), ping_bytes()})));
    CHECK(at.ask == AckAsk::at_once);
    CHECK(at.probed == 1);
  }
}

TEST_CASE("a packet that is cut anywhere is an error or has its whole frames read, and nothing more") {
  const Buffer whole = together({ping_bytes(), PacketReading::ack(0_packet, 0_packet),
                                 filler_bytes(CarrierFrameType::probe, 40), ping_bytes(),
                                 filler_bytes(CarrierFrameType::padding, 3)});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    PacketReading at;
    at.send();
    const auto read = at.read(Buffer(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    if (!read) CHECK(read.error() == LinkError::malformed_frame);
  }
  PacketReading at;
  at.send();
  REQUIRE(at.read(whole));
  CHECK(at.acknowledged == 1);
}

TEST_CASE("an acknowledgement of a packet that was never sent ends the carrier, and counts for nothing") {
  PacketReading at;
  at.send();
  CHECK_FALSE(at.read(PacketReading::ack(0_packet, 1_packet)));
  CHECK(at.acknowledged == 0);
  CHECK(at.flight.sent().bytes_in_flight() > 0);
  REQUIRE(at.read(PacketReading::ack(0_packet, 0_packet)));
  CHECK(at.acknowledged == 1);
  CHECK(at.flight.sent().bytes_in_flight() == 0);
}

TEST_CASE("a challenge is answered where it came from, and only with its own token") {
  PacketReading at;
  Buffer challenge;
  const PathToken token{std::byte{9}, std::byte{8}};
  write_path_token(CarrierFrameType::path_challenge, token, challenge);
  const UdpAddress elsewhere{boost::asio::ip::make_address("198.51.100.9"), 9};
  REQUIRE(at.reader.read({.payload = challenge, .number = 1_packet, .from = elsewhere, .arrived = kStart},
                         at.ask, kStart));
  CHECK(at.ask == AckAsk::at_once);
  REQUIRE(at.address.frame_due());
  Buffer answer, expected;
  CHECK(at.address.write_frame(answer) == elsewhere);
  write_path_token(CarrierFrameType::path_response, token, expected);
  CHECK(answer == expected);
  CHECK(at.address.current() == kPartsPeer);
  // A response to nothing moves nobody.
  REQUIRE(at.reader.read({.payload = expected, .number = 2_packet, .from = elsewhere, .arrived = kStart},
                         at.ask, kStart));
  CHECK(at.address.current() == kPartsPeer);
  // Nor does a token of the wrong length.
  expected.pop_back();
  expected[1] = std::byte{7};
  CHECK_FALSE(at.read(expected));
}

TEST_CASE("frames of a carrier are not restored by error correction") {
  // The peer protects what it wants: here, an acknowledgement.
  for (const bool carrier_frame : {false, true}) {
    PacketReading at;
    const Buffer lost = carrier_frame ? PacketReading::ack(0_packet, 0_packet) : ping_bytes();
    PacketFec peer;
    const fec::Mode always{.kind = fec::Mode::Kind::fixed, .source_packets = 1, .repair_packets = 1};
    const auto symbol = peer.next_symbol(true, always);
    REQUIRE(symbol);
    peer.add_symbol(symbol->of, 0_packet, lost);
    peer.on_sent(symbol->of, always, kStart);
    const auto repair = peer.next_repair(kStart);
    REQUIRE(repair);
    Buffer packet;
    write_repair(*repair, packet);
    REQUIRE(at.read(packet));
    at.ask = AckAsk::none;
    const auto restored = at.reader.read_restored(2_packet, at.ask, kStart);
    CHECK(restored.has_value() == !carrier_frame);
    CHECK(at.ask == (carrier_frame ? AckAsk::none : AckAsk::soon));
  }
}
