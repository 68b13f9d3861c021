// SPDX-License-Identifier: Apache-2.0
// How frames are counted, how a checksum left to hardware is finished, and how a payload is damaged.
#include "tools/wan/frame.h"

#include <bit>
#include <catch2/catch.hpp>
#include <vector>

#include "tools/wan/lateness.h"

using namespace longhaul::wan;
using namespace std::chrono_literals;

namespace {

using Frame = std::vector<std::byte>;

void put_word(Frame& frame, std::size_t at, unsigned value) {
  frame[at] = static_cast<std::byte>(value >> 8);
  frame[at + 1] = static_cast<std::byte>(value & 0xff);
}

Frame ethernet(unsigned type, std::size_t payload) {
  Frame frame(kEthernetHeader + payload);
  put_word(frame, 12, type);
  return frame;
}

unsigned fold(const Frame& frame, std::size_t from, std::size_t to, unsigned sum) {
  for (std::size_t i = from; i < to; ++i)
    sum += std::to_integer<unsigned>(frame[i]) << ((i - from) % 2 == 0 ? 8 : 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

struct Packet {
  Frame frame;
  std::size_t segment_at, payload_at, checksum_at;
  unsigned pseudo;  // what the pseudo header adds to the checksum's sum
};

// One of each family and transport for each size of payload, without a checksum.
std::vector<Packet> packets(std::initializer_list<std::size_t> payloads) {
  std::vector<Packet> all;
  for (const bool v6 : {false, true})
    for (const unsigned protocol : {6u, 17u})
      for (const std::size_t payload : payloads) {
        const std::size_t header = v6 ? 40 : 20;
        const std::size_t transport = protocol == 6 ? 20 : 8;
        const std::size_t segment = transport + payload;
        Frame frame = ethernet(v6 ? 0x86dd : 0x0800, header + segment);
        for (std::size_t i = 14; i < frame.size(); ++i) frame[i] = static_cast<std::byte>(i * 31 + 7);
        if (v6) {
          put_word(frame, 14 + 4, static_cast<unsigned>(segment));
          frame[14 + 6] = static_cast<std::byte>(protocol);
        } else {
          frame[14] = std::byte{0x45};
          put_word(frame, 14 + 2, static_cast<unsigned>(header + segment));
          frame[14 + 9] = static_cast<std::byte>(protocol);
        }
        if (protocol == 6) frame[14 + header + 12] = std::byte{0x50};
        // RFC 8200, section 8.1; RFC 9293, section 3.1: addresses, length and protocol.
        const std::size_t addresses = 14 + (v6 ? 8u : 12u);
        const unsigned pseudo =
            fold(frame, addresses, 14 + header, static_cast<unsigned>(segment) + protocol);
        all.push_back({std::move(frame), 14 + header, 14 + header + transport,
                       14 + header + (protocol == 6 ? 16 : 6), pseudo});
      }
  return all;
}

}  // namespace

TEST_CASE("an IP packet counts by its own length, without Ethernet's padding") {
  Frame v4 = ethernet(0x0800, 46);
  v4[14] = std::byte{0x45};
  put_word(v4, 16, 40);
  CHECK(ip_bytes(v4) == 40);
  put_word(v4, 16, 400);  // a lie does not count for more than was sent
  CHECK(ip_bytes(v4) == 46);
  Frame v6 = ethernet(0x86dd, 60);
  put_word(v6, 18, 8);
  CHECK(ip_bytes(v6) == 48);
}

TEST_CASE("other frames count by their payload, tagged ones without the tag") {
  CHECK(ip_bytes(ethernet(0x0806, 28)) == 28);
  Frame tagged = ethernet(0x8100, 4 + 1000);
  put_word(tagged, 16, 0x0806);
  CHECK(ip_bytes(tagged) == 1000);
  CHECK(ip_bytes(Frame(5)) == 5);
}

TEST_CASE("an unfinished checksum is completed, for both families and odd lengths") {
  for (Packet& packet : packets({0, 1, 333})) {
    put_word(packet.frame, packet.checksum_at, packet.pseudo);
    REQUIRE(finish_checksum(packet.frame));
    CHECK(fold(packet.frame, packet.segment_at, packet.frame.size(), packet.pseudo) == 0xffff);
  }
}

TEST_CASE("a flipped bit is in the payload, and the checksum does not reveal it") {
  for (Packet& packet : packets({1, 2, 333})) {
    put_word(packet.frame, packet.checksum_at, packet.pseudo);
    REQUIRE(finish_checksum(packet.frame));
    for (const double at : {0.0, 0.3, 0.5, 0.999}) {
      Frame flipped = packet.frame;
      REQUIRE(flip_payload_bit(flipped, at));
      CHECK(fold(flipped, packet.segment_at, flipped.size(), packet.pseudo) == 0xffff);
      int bits = 0;
      for (std::size_t i = packet.payload_at; i < flipped.size(); ++i)
        bits += std::popcount(std::to_integer<unsigned>(flipped[i] ^ packet.frame[i]));
      CHECK(bits == 1);
      flipped.resize(packet.checksum_at);
      CHECK(std::equal(flipped.begin(), flipped.end(), packet.frame.begin()));
    }
  }
}

TEST_CASE("a packet without payload, or of another protocol, is not damaged") {
  for (Packet& packet : packets({0})) CHECK_FALSE(flip_payload_bit(packet.frame, 0.5));
  Frame arp = ethernet(0x0806, 28);
  CHECK_FALSE(flip_payload_bit(arp, 0.5));
  for (std::size_t size = 0; size < 14 + 20 + 20; ++size)
    for (Packet& packet : packets({40})) {
      packet.frame.resize(std::min(size, packet.segment_at + 8));
      CHECK_FALSE(flip_payload_bit(packet.frame, 0.5));
    }
}

TEST_CASE("packets other than TCP or UDP, and truncated ones, stay unchanged") {
  Frame arp = ethernet(0x0806, 28);
  const Frame before = arp;
  CHECK_FALSE(finish_checksum(arp));
  CHECK(arp == before);
  for (std::size_t size = 0; size < 14 + 40; ++size) {
    Frame cut = ethernet(0x0800, 60);
    cut[14] = std::byte{0x45};
    put_word(cut, 16, 60);
    cut[14 + 9] = std::byte{6};
    cut.resize(size);
    CHECK_FALSE(finish_checksum(cut));
  }
}

TEST_CASE("lateness is measured to a sixteenth") {
  Lateness lateness;
  for (int i = 1; i <= 1000; ++i) lateness.add(i * 1us);
  CHECK(lateness.count() == 1000);
  CHECK(lateness.max() == 1ms);
  CHECK(lateness.quantile(0.5) >= 500us);
  CHECK(lateness.quantile(0.5) <= 532us);
  CHECK(lateness.quantile(0.99) >= 990us);
  CHECK(lateness.quantile(0.99) <= 1ms);
  lateness.add(-5us);  // early counts as punctual
  CHECK(lateness.quantile(0) == 0us);
  lateness.add(std::chrono::hours{24});
  CHECK(lateness.quantile(1) == std::chrono::hours{24});
  CHECK(Lateness{}.quantile(0.5) == 0us);
}

TEST_CASE("packets of one flow are told from others by addresses, protocol and ports") {
  auto all = packets({100, 900});
  for (Packet& packet : all)
    if (packet.segment_at == 34) put_word(packet.frame, 20, 0);  // IPv4, not a fragment
  // Payloads differ in size alone, and the pattern of the bytes is the same.
  CHECK(traits_of(all[0].frame).flow == traits_of(all[1].frame).flow);
  CHECK(traits_of(all[0].frame).flow != traits_of(all[2].frame).flow);
  for (const Packet& packet : all) {
    Frame other = packet.frame;
    other[packet.segment_at + 1] ^= std::byte{1};  // a port
    CHECK(traits_of(other).flow != traits_of(packet.frame).flow);
    other = packet.frame;
    other[packet.segment_at - 1] ^= std::byte{1};  // an address
    CHECK(traits_of(other).flow != traits_of(packet.frame).flow);
    other = packet.frame;
    other[packet.payload_at] ^= std::byte{1};
    CHECK(traits_of(other).flow == traits_of(packet.frame).flow);
    if (packet.segment_at != 34) continue;
    // A fragment has no ports: it belongs to its addresses.
    put_word(other, 20, 0x2000);
    Frame fragment = other;
    fragment[packet.segment_at + 1] ^= std::byte{1};
    CHECK(traits_of(fragment).flow == traits_of(other).flow);
  }
  CHECK(traits_of(ethernet(0x0806, 46)).flow == 0);  // ARP
  CHECK(traits_of(Frame(3)).flow == 0);
}

TEST_CASE("congestion is marked in both families, and the header's checksum stays valid") {
  for (Packet& packet : packets({100})) {
    Frame& frame = packet.frame;
    const bool v6 = std::to_integer<unsigned>(frame[14]) >> 4 != 4;
    const std::size_t at = 15;
    const unsigned shift = v6 ? 4 : 0;
    for (const unsigned field : {0u, 1u, 2u, 3u}) {
      frame[at] = (frame[at] & ~(std::byte{3} << shift)) | (std::byte(field) << shift);
      const Ecn expected = field == 0 ? Ecn::not_capable : field == 3 ? Ecn::experienced : Ecn::capable;
      CHECK(traits_of(frame).ecn == expected);
      if (!v6) {
        put_word(frame, 24, 0);
        put_word(frame, 24, ~fold(frame, 14, 34, 0) & 0xffff);
      }
      const Frame before = frame;
      Frame marked = frame;
      mark_congestion(marked);
      CHECK(traits_of(marked).ecn == Ecn::experienced);
      if (!v6) CHECK(fold(marked, 14, 34, 0) == 0xffff);
      for (std::size_t i = 0; i < marked.size(); ++i)
        if (i != at && (v6 || (i != 24 && i != 25))) REQUIRE(marked[i] == before[i]);
    }
  }
}
