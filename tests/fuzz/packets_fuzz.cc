// SPDX-License-Identifier: Apache-2.0
// Packets of the UDP carrier. Before decryption: any bytes are a packet that was sealed, or are refused
// without a change of state. After it: any payload is frames or an error. Between: a line that loses,
// repeats, reorders and damages, with keys that change every few packets, opens each packet once and
// unchanged.
#include <set>
#include <vector>

#include "fuzz/target.h"
#include "proxy/link/udp/packet.h"

namespace longhaul::fuzz::packets_target {
using namespace longhaul::link;
using namespace longhaul::link::udp;

namespace {

constexpr Cipher kCiphers[] = {Cipher::aes_128_gcm, Cipher::chacha20_poly1305};
constexpr TimePoint kStart{std::chrono::hours(1)};

// Those of golden/packets.txt, so that its packets, in the corpus, open here.
DirectionKeys keys() {
  Buffer exported(kExportedBytes);
  for (std::size_t i = 0; i < exported.size(); ++i) exported[i] = std::byte(i);
  return keys_from_exporter(exported).dialler_to_acceptor;
}

// What a peer with the right keys may put into a packet.
void read_payload(Bytes payload) {
  while (!payload.empty()) {
    auto parsed = parse_frame(payload);
    if (!parsed || !*parsed) return;
    require((*parsed)->consumed > 0 && (*parsed)->consumed <= payload.size());
    payload = payload.subspan((*parsed)->consumed);
  }
}

// The bytes are one datagram from anybody.
void from_a_stranger(Bytes bytes) {
  auto header = read_packet_header(bytes);
  if (header) {
    require(bytes.size() > kPacketOverhead);
    Buffer written(kPacketHeaderBytes);
    write_packet_header(*header, MutableBytes(written).first<kPacketHeaderBytes>());
    require(std::equal(written.begin(), written.end(), bytes.begin()));
    constexpr std::uint64_t kOne = 1, kEnd = kOne << 62;
    for (const std::uint64_t expected : {std::uint64_t{0}, kOne << 31, kOne << 33, kEnd - 1}) {
      const PacketNumber number = decode_packet_number(PacketNumber(expected), header->low_number);
      require(low_bits(number) == header->low_number && number < PacketNumber(kEnd));
    }
  }
  for (Cipher cipher : kCiphers) {
    PacketOpener opener(keys(), cipher);
    Buffer first(bytes.begin(), bytes.end()), second = first;
    auto opened = opener.open(first, kStart);
    require(!opened || header);
    if (opened) {
      require(opened->payload.data() == first.data() + kPacketHeaderBytes);
      require(opened->payload.size() == first.size() - kPacketOverhead);
      read_payload(opened->payload);
    }
    require(!opener.open(second, kStart));
    // Whatever it was, the peer's packets open.
    PacketSealer sealer(keys(), cipher);
    for (int i = 0; i < 2; ++i) {  // the stranger may have sent the peer's first one, or its second, on
      Buffer packet(kPacketOverhead + 1, std::byte{0x5a});
      require(sealer.seal(packet).has_value());
      require(opener.open(packet, kStart).has_value() || opened);
    }
  }
}

// The bytes are what happens on the line.
void over_a_bad_line(Cipher cipher, Bytes actions) {
  PacketSealer sealer(keys(), cipher, {.update_after = 3, .packets_per_key = 9});
  PacketOpener opener(keys(), cipher);
  opener.keep_previous_keys(std::chrono::milliseconds(100));
  TimePoint now = kStart;
  struct Sent {
    PacketNumber number;
    std::byte first;
    std::size_t bytes;
    Buffer packet;
  };
  std::vector<Sent> sent;
  std::set<PacketNumber> taken;
  for (std::byte action : actions) {
    unsigned value = std::to_integer<unsigned>(action), argument = value >> 3;
    switch (value & 7) {
      case 0:
      case 1: {
        Buffer packet(kPacketOverhead + 1 + argument * 7, action);
        auto number = sealer.seal(packet);
        if (!number) break;
        require(sent.empty() || *number > sent.back().number);
        sent.push_back({*number, action, packet.size() - kPacketOverhead, packet});
        break;
      }
      case 2:
      case 3: {  // one of the latest arrives, for the first time or not
        if (sent.empty()) break;
        const Sent& one = sent[sent.size() - 1 - argument % sent.size()];
        Buffer packet = one.packet;
        auto opened = opener.open(packet, now);
        if (!opened) break;
        require(opened->number == one.number && taken.insert(one.number).second);
        require(opened->payload.size() == one.bytes && opened->payload.front() == one.first &&
                opened->payload.back() == one.first);
        break;
      }
      case 4: {  // damaged
        if (sent.empty()) break;
        Buffer packet = sent.back().packet;
        packet[(argument * 37 + taken.size()) % packet.size()] ^= std::byte(1u << argument % 8);
        require(!opener.open(packet, now));
        break;
      }
      case 5:
        if (!taken.empty()) sealer.on_acknowledged(*taken.rbegin());
        break;
      case 6:
        sealer.on_acknowledged(sealer.next_number() + argument);  // not sent: means nothing
        break;
      case 7:
        now += std::chrono::milliseconds(argument * argument);
        break;
    }
    require(opener.counters().opened == taken.size());
    require(sealer.key_updates() >= opener.counters().key_updates);
  }
}

}  // namespace

// The first byte says what the others are.
FUZZ_TARGET(packets) {
  if (size == 0) return 0;
  Bytes rest = std::as_bytes(std::span(data + 1, size - 1));
  switch (data[0] & 3) {
    case 0:
      from_a_stranger(rest);
      break;
    case 1:
      read_payload(rest);
      break;
    default:
      over_a_bad_line(kCiphers[data[0] & 1], rest.first(std::min<std::size_t>(rest.size(), 2'000)));
  }
  return 0;
}

}  // namespace longhaul::fuzz::packets_target
