// SPDX-License-Identifier: Apache-2.0
// Where a carrier sends to when packets come from elsewhere: a peer behind a NAT that forgot it, or somebody
// who repeats its packets. The test is the peer, by hand.
#include <catch2/catch.hpp>

#include "proxy/link/udp/udp_carrier.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {

UdpAddress at(unsigned short port) { return {boost::asio::ip::make_address("192.0.2.1"), port}; }

struct Sent {
  UdpAddress to;
  std::vector<std::pair<CarrierFrameType, Buffer>> frames;
};

struct HandPeer {
  HandPeer()
      : session({.side = Side::acceptor}, pool, retained, nullptr, now),
        carrier({.side = Side::acceptor, .keys = keys, .new_carrier = [this] { return ++names; }}, session,
                now),
        sealer(keys.sent_by(Side::dialler), Cipher::aes_128_gcm),
        opener(keys.received_by(Side::dialler), Cipher::aes_128_gcm) {}

  Buffer packet(Bytes frames) {
    Buffer made(kPacketOverhead + frames.size());
    std::copy(frames.begin(), frames.end(), made.begin() + kPacketHeaderBytes);
    REQUIRE(sealer.seal(made).has_value());
    return made;
  }
  Buffer probe() {
    Buffer frames;
    write_filler(CarrierFrameType::probe, 10, frames);
    return packet(frames);
  }
  // Hands it in and answers what the carrier sends then.
  std::vector<Sent> receive(Buffer bytes, unsigned short port) {
    REQUIRE(carrier.receive(bytes, at(port), now).has_value());
    std::vector<Sent> sent;
    DatagramBatch batch;
    while (carrier.transmit(batch, now))
      for (std::size_t start = 0; start < batch.bytes.size(); start += batch.segment_bytes) {
        std::size_t size = std::min(batch.segment_bytes, batch.bytes.size() - start);
        auto opened = opener.open(MutableBytes(batch.bytes).subspan(start, size), now);
        REQUIRE(opened.has_value());
        sent.push_back({batch.to, {}});
        for (Bytes rest = opened->payload; !rest.empty();) {
          std::size_t frame = frame_size(rest).value().value();
          ByteReader in(rest.subspan(1));
          Bytes body = *in.sized();
          sent.back().frames.emplace_back(static_cast<CarrierFrameType>(rest[0]),
                                          Buffer(body.begin(), body.end()));
          rest = rest.subspan(frame);
        }
      }
    return sent;
  }
  // The challenge among what was sent, and nothing else to that address.
  static std::optional<Buffer> challenge(const std::vector<Sent>& sent, unsigned short port) {
    std::optional<Buffer> found;
    for (const Sent& one : sent) {
      if (one.to != at(port)) continue;
      REQUIRE_FALSE(found);
      REQUIRE(one.frames.size() == 1);
      REQUIRE(one.frames[0].first == CarrierFrameType::path_challenge);
      found = one.frames[0].second;
    }
    return found;
  }
  Buffer response(Bytes token) {
    Buffer frames;
    write_frame_head(CarrierFrameType::path_response, token.size(), frames);
    append(frames, token);
    return packet(frames);
  }

  TimePoint now{1h};
  CarrierKeys keys = keys_from_exporter(Buffer(kExportedBytes, std::byte{7}));
  CreditPool pool{1 << 20, 8};
  RetainedBudget retained{1 << 20};
  Session session;
  CarrierId names;
  UdpCarrier carrier;
  PacketSealer sealer;
  PacketOpener opener;
};

}  // namespace

TEST_CASE("a carrier follows its peer to another address after the peer answered from there") {
  HandPeer peer;
  peer.receive(peer.probe(), 1);
  CHECK(peer.carrier.peer() == at(1));
  peer.now += 1s;
  auto token = HandPeer::challenge(peer.receive(peer.probe(), 2), 2);
  REQUIRE(token);
  CHECK(peer.carrier.peer() == at(1));
  SECTION("the first answer comes") {
    peer.receive(peer.response(*token), 2);
    CHECK(peer.carrier.peer() == at(2));
  }
  SECTION("a lost challenge or response is repeated unchanged until it succeeds") {
    for (int again = 0; again < 5; ++again) {
      peer.now += 250ms;
      auto repeated = HandPeer::challenge(peer.receive(peer.probe(), 2), 2);
      REQUIRE(repeated);
      CHECK(*repeated == *token);
    }
    CHECK(peer.carrier.peer() == at(1));
    peer.receive(peer.response(*token), 2);
    CHECK(peer.carrier.peer() == at(2));
  }
  SECTION("a wrong response is ignored") {
    Buffer wrong = *token;
    wrong[7] ^= std::byte{1};
    peer.receive(peer.response(wrong), 2);
    CHECK(peer.carrier.peer() == at(1));
  }
}

TEST_CASE("replayed or overtaking packets from another address draw one small packet per 200 ms at most") {
  HandPeer peer;
  peer.receive(peer.probe(), 1);
  peer.now += 1s;
  Buffer older = peer.probe(), newer = peer.probe();
  peer.receive(newer, 1);
  // Seen before, or older than what came: nothing at all goes there.
  for (const Sent& sent : peer.receive(newer, 3)) CHECK(sent.to == at(1));
  for (const Sent& sent : peer.receive(older, 3)) CHECK(sent.to == at(1));
  // A hundred packets that are caught and sent on first.
  int challenges = 0;
  for (int i = 0; i < 100; ++i, peer.now += 10ms)
    challenges += HandPeer::challenge(peer.receive(peer.probe(), 3), 3).has_value();
  CHECK(challenges == 5);
  CHECK(peer.carrier.peer() == at(1));
}

TEST_CASE("nothing is sent to an address from which nothing authentic arrived") {
  HandPeer peer;
  for (unsigned bit = 0; bit < 8; ++bit) {
    Buffer forged = peer.probe();
    forged[forged.size() - 1 - bit] ^= std::byte(1u << bit);
    CHECK(peer.receive(forged, 4).empty());
  }
  CHECK(peer.carrier.counters().packets_dropped == 8);
  CHECK(peer.carrier.counters().packets_sent == 0);
}
