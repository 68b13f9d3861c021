// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/carrier_frames.h"

#include <catch2/catch.hpp>
#include <random>

#include "codecs/byte_reader.h"
#include "tests/proxy/link/numbers.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {

std::string hex(Bytes bytes) {
  std::string text;
  for (std::byte b : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", std::to_integer<unsigned>(b));
    text += two;
  }
  return text;
}

// What stands behind type and length.
Bytes body_of(const Buffer& frame) {
  ByteReader in(Bytes(frame).subspan(1));
  Bytes body = *in.sized();
  REQUIRE(in.remaining() == 0);
  return body;
}

}  // namespace

TEST_CASE("carrier frames match the protocol, byte for byte") {
  Buffer out;
  PacketAck ack{.delay = 300us, .arrival = 70ms, .ranges = {}};
  ack.ranges.push_back({98_packet, 100_packet});
  ack.ranges.push_back({96_packet, 96_packet});
  ack.ranges.push_back({0_packet, 9_packet});
  write_packet_ack(ack, out);
  //         type length largest delay arrival  first gap range gap  range
  CHECK(hex(out) == "200e4064412c80011170020000405509");
  out.clear();
  write_symbol({fec::Class::bulk, 300}, out);
  CHECK(hex(out) == "240301412c");
  out.clear();
  std::byte coded[3]{std::byte{1}, std::byte{2}, std::byte{3}};
  RepairFrame repair{fec::Class::interactive, {{70, 5}, 9, coded}};
  write_repair(repair, out);
  CHECK(hex(out) == "25080040460509010203");
  CHECK(out.size() == repair_frame_size(repair));
  out.clear();
  write_recovered({1000_packet, 999_packet, 10_packet}, out);
  CHECK(hex(out) == "260543e80043dc");
  out.clear();
  write_path_token(CarrierFrameType::path_challenge, {std::byte{0xab}}, out);
  CHECK(hex(out) == "2208ab00000000000000");
}

TEST_CASE("any acknowledgement is decoded as it was encoded") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    PacketAck ack{.delay = std::chrono::microseconds(random() % 100'000),
                  .arrival = std::chrono::microseconds(random() >> (20 + random() % 40)),
                  .ranges = {}};
    std::uint64_t next = kMaxVarint >> (random() % 50);
    while (ack.ranges.size() < 1 + round % kMaxAckRanges) {
      const std::uint64_t last = next - std::min(next, random() % 1000 >> random() % 10);
      const std::uint64_t first = last - std::min(last, random() % 1000 >> random() % 10);
      ack.ranges.push_back({PacketNumber(first), PacketNumber(last)});
      if (first < 2) break;
      next = first - 2;
    }
    Buffer frame;
    write_packet_ack(ack, frame);
    auto parsed = parse_packet_ack(body_of(frame));
    REQUIRE(parsed.has_value());
    CHECK(parsed->delay == ack.delay);
    CHECK(parsed->arrival == ack.arrival);
    REQUIRE(parsed->ranges.size() == ack.ranges.size());
    CHECK(std::equal(ack.ranges.begin(), ack.ranges.end(), parsed->ranges.begin()));
  }
}

TEST_CASE("recovered packet numbers are decoded as encoded, and a wrong order is refused") {
  RecoveredNumbers numbers{5'000'000'000_packet, 4'999'999'999_packet, 17_packet, 0_packet};
  Buffer frame;
  write_recovered(numbers, frame);
  auto parsed = parse_recovered(body_of(frame));
  REQUIRE(parsed.has_value());
  CHECK(std::equal(parsed->begin(), parsed->end(), numbers.begin(), numbers.end()));
  // 3, then four below it.
  const std::byte below_zero[]{std::byte{3}, std::byte{3}};
  CHECK(parse_recovered(below_zero).has_error());
}

TEST_CASE("a filler has exactly the requested size and consists of whole frames") {
  for (std::size_t size = 2; size < 1500; ++size) {
    Buffer frame;
    write_filler(CarrierFrameType::probe, size, frame);
    REQUIRE(frame.size() == size);
    std::size_t frames = 0;
    for (Bytes rest = frame; !rest.empty(); ++frames) {
      ByteReader in(rest.subspan(1));
      REQUIRE(in.sized().has_value());
      rest = in.rest();
    }
    CHECK(frames <= 2);
  }
}

TEST_CASE("frames that no carrier sends are refused") {
  auto bytes = [](std::initializer_list<int> values) {
    Buffer buffer;
    for (int value : values) buffer.push_back(std::byte(value));
    return buffer;
  };
  CHECK(parse_packet_ack(bytes({})).has_error());
  CHECK(parse_packet_ack(bytes({5, 0, 0})).has_error());           // no range
  CHECK(parse_packet_ack(bytes({5, 0, 0, 6})).has_error());        // begins below zero
  CHECK(parse_packet_ack(bytes({5, 0, 0, 1, 3, 0})).has_error());  // the second range would end below zero
  CHECK(parse_packet_ack(bytes({5, 0, 0, 1, 0})).has_error());     // a gap and nothing behind it
  CHECK(parse_symbol(bytes({3, 1})).has_error());                  // no such class
  CHECK(parse_symbol(bytes({0, 1, 1})).has_error());
  CHECK(parse_repair(bytes({0, 1, 0, 0, 9})).has_error());           // over no symbol
  CHECK(parse_repair(bytes({0, 1, 0x40, 0xc1, 0, 9})).has_error());  // over 193
  CHECK(parse_repair(bytes({0, 1, 5, 0x40, 0x40, 9})).has_error());  // key 64
  CHECK(parse_path_token(bytes({1, 2, 3})).has_error());
}
