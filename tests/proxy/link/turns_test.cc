// SPDX-License-Identifier: Apache-2.0
// How much of a stream goes out at its turn: a part while others wait, all there is room for while nobody
// does.
#include "hand_peer.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;

namespace {

constexpr std::size_t kBytes = 12'000, kTurn = 2800;

Stream& bulk(HandPeer& peer) {
  Stream& stream = peer.session.open(some_request(), peer.now);
  stream.writer().write(Slice::copy_of(Buffer(kBytes, std::byte{'x'})));
  return stream;
}

}  // namespace

TEST_CASE("the frames of a single stream are sent with one header") {
  HandPeer peer(Side::dialler);
  peer.chunk = kTurn;
  REQUIRE(peer.send(OpenCreditFrame{1 << 20, 64 << 10}));
  bulk(peer);
  const auto frames = peer.frames_of<StreamFrame>();
  REQUIRE(frames.size() == 1);
  CHECK(frames[0].payload.size() > kBytes);
  CHECK(frames[0].payload.size() < kBytes + 100);
}

TEST_CASE("streams that wait for each other take turns") {
  HandPeer peer(Side::dialler);
  peer.chunk = kTurn;
  REQUIRE(peer.send(OpenCreditFrame{1 << 20, 64 << 10}));
  const StreamId first = bulk(peer).id();
  const StreamId second = bulk(peer).id();
  const auto frames = peer.frames_of<StreamFrame>();
  REQUIRE(frames.size() >= 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(frames[i].stream == (i % 2 ? second : first));
    CHECK(frames[i].payload.size() <= kTurn);
  }
}
