// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/packet.h"

#include <chrono>
#include <deque>
#include <random>
#include <set>

#include "proxy/link/golden.h"
#include "tests/proxy/link/numbers.h"
#include "tests/proxy/link/start.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {

constexpr Cipher kCiphers[] = {Cipher::aes_128_gcm, Cipher::chacha20_poly1305};
CarrierKeys test_keys() {
  return keys_from_exporter(golden::from_hex(golden::read("packets.txt")["exported"]));
}

Buffer unsealed(Bytes payload) {
  Buffer packet(payload.size() + kPacketOverhead);
  std::copy(payload.begin(), payload.end(), packet.begin() + kPacketHeaderBytes);
  return packet;
}

Buffer sealed(PacketSealer& sealer, Bytes payload) {
  Buffer packet = unsealed(payload);
  REQUIRE(sealer.seal(packet).has_value());
  return packet;
}

// The opener works in place; tests want to keep what they captured.
Result<std::pair<PacketNumber, Buffer>> opened(PacketOpener& opener, Buffer packet, TimePoint now = kStart) {
  auto result = opener.open(packet, now);
  if (!result) return result.error();
  return std::pair(result->number, Buffer(result->payload.begin(), result->payload.end()));
}

Buffer hello() { return golden::from_hex("080101"); }

}  // namespace

TEST_CASE("packets are sealed and opened exactly as the golden vectors") {
  auto vectors = golden::read("packets.txt");
  for (Cipher cipher : kCiphers)
    for (Side side : {Side::dialler, Side::acceptor}) {
      std::string name = side == Side::dialler ? "dialler" : "acceptor";
      name += cipher == Cipher::aes_128_gcm ? "_aes_packet_" : "_chacha_packet_";
      INFO(name);
      CarrierKeys keys = test_keys();
      PacketSealer sealer(keys.sent_by(side), cipher, {.update_after = 1});
      PacketOpener opener(keys.sent_by(side), cipher);
      for (const auto number : {0_packet, 1_packet}) {
        CHECK(sealer.next_number() == number);
        Buffer packet = sealed(sealer, hello());
        CHECK(golden::to_hex(packet) == vectors[name + std::to_string(number.number())]);
        auto back = opened(opener, packet);
        REQUIRE(back.has_value());
        CHECK(back->first == number);
        CHECK(back->second == hello());
        sealer.on_acknowledged(number);
      }
      CHECK(opener.counters().key_updates == 1);
    }
}

TEST_CASE("a header is decoded as it was encoded, and unknown flags are refused") {
  Buffer packet(kPacketOverhead + 1);
  for (KeyPhase phase : {KeyPhase::even, KeyPhase::odd}) {
    PacketHeader header{.phase = phase, .id = test_keys().acceptor_to_dialler.id, .low_number = 0x89abcdef};
    write_packet_header(header, MutableBytes(packet).first<kPacketHeaderBytes>());
    auto read = read_packet_header(packet);
    REQUIRE(read);
    CHECK((read->phase == phase && read->id == header.id && read->low_number == header.low_number));
  }
  for (unsigned flags = 0; flags < 256; ++flags) {
    packet[0] = std::byte(flags);
    CHECK(read_packet_header(packet).has_value() == (flags == 0x40 || flags == 0x41));
  }
  packet[0] = std::byte{0x40};
  for (std::size_t size = 0; size <= packet.size(); ++size)
    CHECK(read_packet_header(Bytes(packet).first(size)).has_value() == (size == packet.size()));
}

TEST_CASE("the low 32 bits of a number give the number closest to the expected one") {
  CHECK(decode_packet_number(0_packet, 0) == 0_packet);
  CHECK(decode_packet_number(0_packet, 0xffffffff) == 0xffffffff_packet);  // there is none below zero
  CHECK(decode_packet_number(0x1'0000'0000_packet, 0xffffffff) == 0xffffffff_packet);
  CHECK(decode_packet_number(0xffffffff_packet, 0) == 0x1'0000'0000_packet);
  CHECK(decode_packet_number(0x8000'0000_packet, 0) ==
        0x1'0000'0000_packet);  // of two as close the higher, as in the RFC
  CHECK(decode_packet_number(0x8000'0001_packet, 0) == 0x1'0000'0000_packet);
  CHECK(decode_packet_number(0x7fff'ffff_packet, 0) == 0_packet);
  constexpr PacketNumber last((std::uint64_t{1} << 62) - 1);
  CHECK(decode_packet_number(last, 0) == last - 0xffffffff);  // there is none above
  CHECK(decode_packet_number(last, 0xffffffff) == last);

  std::mt19937_64 random(3);
  for (int i = 0; i < 100'000; ++i) {
    const PacketNumber expected((random() & last.number()) >> random() % 62);
    std::uint64_t distance = (random() & 0x7fffffff) >> random() % 31;
    if (expected.number() >= distance)
      REQUIRE(decode_packet_number(expected, low_bits(expected - distance)) == expected - distance);
    if (distance <= last - expected)
      REQUIRE(decode_packet_number(expected, low_bits(expected + distance)) == expected + distance);
  }
}

TEST_CASE("payloads of every size are opened, in any order, each number once") {
  for (Cipher cipher : kCiphers) {
    CarrierKeys keys = test_keys();
    PacketSealer sealer(keys.dialler_to_acceptor, cipher);
    PacketOpener opener(keys.dialler_to_acceptor, cipher);
    std::mt19937_64 random(1);
    std::vector<std::pair<Buffer, Buffer>> packets;
    for (std::size_t size = 1; size < 200; ++size) packets.emplace_back(Buffer(size), Buffer());
    for (std::size_t size : {1'171u, 1'443u, 8'943u, 65'507u - 29u})
      packets.emplace_back(Buffer(size), Buffer());
    for (auto& [payload, packet] : packets) {
      for (std::byte& byte : payload) byte = std::byte(random() & 0xff);
      packet = sealed(sealer, payload);
    }
    std::shuffle(packets.begin(), packets.end(), random);
    std::set<PacketNumber> numbers;
    for (auto& [payload, packet] : packets) {
      auto back = opened(opener, packet);
      REQUIRE(back.has_value());
      CHECK(back->second == payload);
      CHECK(numbers.insert(back->first).second);
    }
    CHECK(*numbers.rbegin() + 1 == sealer.next_number());
    // A capture that is played again, in whatever order, brings nothing.
    std::shuffle(packets.begin(), packets.end(), random);
    for (auto& [payload, packet] : packets) CHECK(opened(opener, packet).error() == PacketError::seen_before);
    CHECK(opener.counters().opened == packets.size());
    CHECK(opener.counters().seen_before == packets.size());
  }
}

TEST_CASE(
    "a packet with any bit changed, truncated or extended does not open, and the right one still does") {
  for (Cipher cipher : kCiphers) {
    CarrierKeys keys = test_keys();
    PacketSealer sealer(keys.dialler_to_acceptor, cipher);
    PacketOpener opener(keys.dialler_to_acceptor, cipher);
    Buffer packet = sealed(sealer, hello());
    for (std::size_t bit = 0; bit < packet.size() * 8; ++bit) {
      Buffer damaged = packet;
      damaged[bit / 8] ^= std::byte(1u << bit % 8);
      auto result = opened(opener, damaged);
      INFO("bit " << bit);
      REQUIRE_FALSE(result.has_value());
      bool in_number_or_behind = bit / 8 > ConnectionId::kSize;
      bool phase = bit == 0;
      CHECK(result.error() ==
            (in_number_or_behind || phase ? PacketError::not_authentic : PacketError::not_a_packet));
    }
    for (std::size_t size = 0; size < packet.size(); ++size)
      CHECK_FALSE(
          opened(opener, Buffer(packet.begin(), packet.begin() + static_cast<long>(size))).has_value());
    Buffer longer = packet;
    longer.push_back(std::byte{0});
    CHECK_FALSE(opened(opener, longer).has_value());
    CHECK(opened(opener, packet).has_value());
  }
}

TEST_CASE("a packet opens only in its own direction, with its own cipher, in its own epoch") {
  CarrierKeys keys = test_keys();
  PacketSealer sealer(keys.dialler_to_acceptor, Cipher::aes_128_gcm);
  Buffer packet = sealed(sealer, hello());
  PacketOpener other_direction(keys.acceptor_to_dialler, Cipher::aes_128_gcm);
  CHECK(opened(other_direction, packet).error() == PacketError::not_a_packet);
  PacketOpener other_cipher(keys.dialler_to_acceptor, Cipher::chacha20_poly1305);
  CHECK(opened(other_cipher, packet).error() == PacketError::not_authentic);
  // Reflected with the id of the way back.
  Buffer reflected = packet;
  std::copy_n(keys.acceptor_to_dialler.id.bytes.begin(), ConnectionId::kSize, reflected.begin() + 1);
  CHECK(opened(other_direction, reflected).error() == PacketError::not_authentic);
  DirectionKeys epoch = keys.dialler_to_acceptor;
  epoch.secret.bytes[31] ^= std::byte{1};
  PacketOpener other_epoch(epoch, Cipher::aes_128_gcm);
  CHECK(opened(other_epoch, packet).error() == PacketError::not_authentic);
}

TEST_CASE("keys change only after a packet under the current ones was acknowledged, and then at the limit") {
  PacketSealer sealer(test_keys().dialler_to_acceptor, Cipher::aes_128_gcm,
                      {.update_after = 4, .packets_per_key = 8});
  auto phase = [&] { return read_packet_header(sealed(sealer, hello()))->phase; };
  for (int i = 0; i < 8; ++i) {
    CHECK(sealer.update_waits() == (i >= 4));
    CHECK(phase() == KeyPhase::even);
  }
  // Without an acknowledgement there are no new keys, and the old ones are worn out: nothing leaves.
  Buffer packet = unsealed(hello()), before = packet;
  CHECK(sealer.seal(packet).error() == PacketError::keys_worn_out);
  CHECK(packet == before);
  CHECK(sealer.next_number() == 8_packet);
  sealer.on_acknowledged(9_packet);  // never sent: says nothing
  CHECK(sealer.seal(packet).error() == PacketError::keys_worn_out);
  sealer.on_acknowledged(7_packet);
  CHECK_FALSE(sealer.update_waits());
  for (int i = 0; i < 5; ++i) CHECK(phase() == KeyPhase::odd);
  // An acknowledgement of the old phase does not confirm the new one.
  sealer.on_acknowledged(7_packet);
  CHECK(sealer.update_waits());
  CHECK(phase() == KeyPhase::odd);
  sealer.on_acknowledged(8_packet);
  CHECK(phase() == KeyPhase::even);
  CHECK(sealer.key_updates() == 2);
}

TEST_CASE("packet numbers end, and stay within a distance of the acknowledged ones") {
  PacketSealer sealer(test_keys().dialler_to_acceptor, Cipher::aes_128_gcm,
                      {.numbers = 20, .unacknowledged = 10});
  Buffer packet = unsealed(hello());
  for (int i = 0; i < 10; ++i) REQUIRE(sealer.seal(packet).has_value());
  CHECK(sealer.seal(packet).error() == PacketError::too_far_ahead);
  sealer.on_acknowledged(9_packet);
  for (int i = 0; i < 10; ++i) REQUIRE(sealer.seal(packet).has_value());
  sealer.on_acknowledged(19_packet);
  CHECK(sealer.seal(packet).error() == PacketError::keys_worn_out);
}

TEST_CASE("old keys are kept for reordered packets, and no longer than specified") {
  CarrierKeys keys = test_keys();
  PacketSealer sealer(keys.dialler_to_acceptor, Cipher::aes_128_gcm, {.update_after = 4});
  PacketOpener opener(keys.dialler_to_acceptor, Cipher::aes_128_gcm);
  opener.keep_previous_keys(300ms);
  std::vector<Buffer> packets;
  for (int i = 0; i < 12; ++i) {
    packets.push_back(sealed(sealer, hello()));
    if (i != 1 && i != 2) sealer.on_acknowledged(PacketNumber(static_cast<std::uint64_t>(i)));
  }
  CHECK(sealer.key_updates() == 2);
  CHECK(opened(opener, packets[0]).has_value());
  CHECK(opened(opener, packets[5]).has_value());  // the second phase begins, its first packet is late
  CHECK(opener.counters().key_updates == 1);
  CHECK(opened(opener, packets[4], kStart + 1s).has_value());
  CHECK(opened(opener, packets[2], kStart + 299ms).error() == PacketError::not_authentic);  // gone at 1 s
  CHECK(opened(opener, packets[8], kStart + 2s).has_value());
  CHECK(opened(opener, packets[6], kStart + 2299ms).has_value());
  CHECK(opened(opener, packets[7], kStart + 2300ms).error() == PacketError::not_authentic);
  CHECK(opened(opener, packets[1], kStart + 2300ms).error() == PacketError::not_authentic);
  CHECK(opened(opener, packets[9], kStart + 2300ms).has_value());
}

TEST_CASE("forged phase bits change nothing") {
  CarrierKeys keys = test_keys();
  PacketSealer sealer(keys.dialler_to_acceptor, Cipher::aes_128_gcm);
  PacketOpener opener(keys.dialler_to_acceptor, Cipher::aes_128_gcm);
  for (int i = 0; i < 100; ++i) {
    Buffer packet = sealed(sealer, hello()), forged = packet;
    forged[0] ^= std::byte{1};
    CHECK(opened(opener, forged).error() == PacketError::not_authentic);
    CHECK(opened(opener, packet).has_value());
    CHECK(opened(opener, forged).error() == PacketError::not_authentic);
  }
  CHECK(opener.counters().key_updates == 0);
}

TEST_CASE("after too many packets that did not open, none is opened any more") {
  CarrierKeys keys = test_keys();
  PacketSealer sealer(keys.dialler_to_acceptor, Cipher::aes_128_gcm);
  PacketOpener opener(keys.dialler_to_acceptor, Cipher::aes_128_gcm, {.failed_opens = 3});
  for (int i = 0; i < 3; ++i) {
    CHECK(opened(opener, sealed(sealer, hello())).has_value());
    Buffer forged = sealed(sealer, hello());
    forged.back() ^= std::byte{1};
    CHECK(opened(opener, forged).error() == PacketError::not_authentic);
  }
  CHECK(opened(opener, sealed(sealer, hello())).error() == PacketError::keys_worn_out);
}

TEST_CASE(
    "keys change often on a line that loses, repeats and reorders, and every packet that arrives opens") {
  const unsigned seed = GENERATE(range(1u, 9u));
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  CarrierKeys keys = test_keys();
  Cipher cipher = kCiphers[seed % 2];
  PacketSealer sealer(keys.dialler_to_acceptor, cipher, {.update_after = 5, .packets_per_key = 200});
  PacketOpener opener(keys.dialler_to_acceptor, cipher);
  opener.keep_previous_keys(1h);

  struct InFlight {
    PacketNumber number;
    std::uint64_t generation;
    Buffer packet;
  };
  std::deque<InFlight> line;
  std::set<PacketNumber> sent, taken;
  std::uint64_t lost = 0;
  for (int step = 0; step < 5'000; ++step) {
    Buffer payload(1 + random() % 60, std::byte(step & 0xff));
    Buffer packet = unsealed(payload);
    auto number = sealer.seal(packet);
    REQUIRE(number.has_value());
    REQUIRE(sent.insert(*number).second);
    if (random() % 5 == 0) {
      ++lost;
    } else {
      line.push_back({*number, sealer.key_updates(), packet});
      if (random() % 10 == 0) line.push_back(line.back());
    }
    if (line.size() < 20) continue;
    // One of the first 12 arrives.
    auto next = line.begin() + static_cast<long>(random() % 12);
    InFlight arrived = *next;
    line.erase(next);
    // Overtaken by two changes of keys it is late beyond what keys are kept for.
    bool keys_gone = arrived.generation + 1 < opener.counters().key_updates;
    auto result = opened(opener, arrived.packet);
    INFO("number " << arrived.number << " at step " << step);
    if (taken.contains(arrived.number)) {
      REQUIRE_FALSE(result.has_value());
    } else if (!keys_gone) {
      REQUIRE(result.has_value());
      REQUIRE(result->first == arrived.number);
      taken.insert(arrived.number);
      if (random() % 4 == 0) sealer.on_acknowledged(arrived.number);
    }
  }
  CHECK(sealer.key_updates() > 50);
  CHECK(sealer.key_updates() - opener.counters().key_updates <= 1);
  CHECK(lost > 0);
}
