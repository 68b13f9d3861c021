// SPDX-License-Identifier: Apache-2.0
// A peer with the right key that does not keep to the protocol: it may end its own session, but crashes
// nothing, and makes this side hold no more than the caps allow.
#include "hand_peer.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;

TEST_CASE("an excessive credit in OPEN leads to streams whose numbers can still be encoded") {
  HandPeer peer(Side::dialler);
  REQUIRE(peer.send(OpenCreditFrame{kMaxVarint, kMaxVarint}));
  for (int i = 0; i < 3; ++i) peer.session.open(some_request(), peer.now);
  CHECK(peer.frames_of<StreamFrame>().size() >= 3);
}

TEST_CASE("credit limits that are too large, or below what was sent, are applied as far as possible") {
  HandPeer peer(Side::dialler);
  Stream& stream = peer.session.open(some_request(), peer.now);
  REQUIRE(peer.send(CreditFrame{{{1_stream, 1, 100}}}));
  stream.writer().write(Buffer(60));
  REQUIRE(peer.send(CreditFrame{{{1_stream, 2, 10}}}));
  CHECK(stream.writer().may_write() == 0);
  auto returns = peer.frames_of<CreditReturnFrame>();
  REQUIRE(returns.size() == 1);
  CHECK(returns[0].generation == 2);
  CHECK(returns[0].limit == 60);
  REQUIRE(peer.send(CreditFrame{{{1_stream, kMaxVarint, kMaxVarint}}}));
  CHECK(stream.writer().may_write() > 0);
  REQUIRE(peer.send(CreditFrame{{{1_stream, kMaxVarint, 0}}}));
  peer.frames();
}

TEST_CASE("many changes of a stream's credit are answered once") {
  HandPeer peer(Side::dialler);
  peer.session.open(some_request(), peer.now);
  REQUIRE(peer.send(CreditFrame{{{1_stream, 1, 100'000}}}));
  for (std::uint64_t i = 2; i < 5000; ++i) REQUIRE(peer.send(CreditFrame{{{1_stream, i, 100'000 - i}}}));
  auto returns = peer.frames_of<CreditReturnFrame>();
  REQUIRE(returns.size() == 1);
  CHECK(returns[0].generation == 4999);
}

TEST_CASE("a stream that is reset before its OPEN arrives leaves no state and is not reported") {
  HandPeer peer;
  REQUIRE(peer.send_stream(1_stream, 10, Buffer(100)));
  CHECK(peer.session.state().live_streams == 1);
  REQUIRE(peer.send(ResetFrame{1_stream, ResetCode::aborted}));
  CHECK(peer.session.state().live_streams == 0);
  CHECK(peer.events_of(1_stream).empty());
  // Nor does what arrives later open anything.
  REQUIRE(peer.send_stream(1_stream, 0, open_record(some_request())));
  CHECK(peer.session.state().live_streams == 0);
  CHECK(peer.frames_of<ResetDoneFrame>().size() == 1);
}

TEST_CASE("bytes that wait behind gaps are bounded over all streams") {
  HandPeer peer(Side::acceptor, 8 << 20, 1000);
  std::uint64_t sent = 0;
  Result<void> taken;
  for (std::uint64_t id = 1; taken && sent < (64u << 20); id = id == 1999 ? 1 : id + 2) {
    taken = peer.send_stream(StreamId(id), 100'000 + sent, Buffer(60'000));
    sent += 60'000;
  }
  REQUIRE_FALSE(taken);
  CHECK(taken.error() == LinkError::too_fragmented);
  CHECK(sent < (9u << 20));
}

TEST_CASE("single bytes between gaps count with the memory they use") {
  HandPeer peer(Side::acceptor, 1 << 20);
  std::uint64_t pieces = 0;
  while (peer.send_stream(1_stream, 2 + 2 * pieces, Buffer(1))) ++pieces;
  CHECK(pieces < (1u << 20) / 100);
}

TEST_CASE("resets of streams that are far apart are bounded") {
  HandPeer peer;
  std::uint64_t sent = 0;
  while (sent < 1'000'000 && peer.send(ResetFrame{StreamId(1 + 4 * sent), ResetCode::aborted})) {
    ++sent;
    if (sent % 1000 == 0) peer.frames();
  }
  CHECK(sent < 100'000);
}

TEST_CASE("a peer that reads nothing cannot make this side store answers without limit") {
  HandPeer peer(Side::dialler);
  std::uint64_t sent = 0;
  SECTION("to resets") {
    while (sent < 1'000'000 && peer.send(ResetFrame{StreamId(2 * (sent + 1)), ResetCode::aborted})) ++sent;
    CHECK(sent < 300'000);
  }
  SECTION("to what it sends again") {
    REQUIRE(peer.send(ResetFrame{2_stream, ResetCode::aborted}));
    for (; sent < 100'000; ++sent) REQUIRE(peer.send_stream(2_stream, sent, Buffer(1)));
    auto acks = peer.frames_of<AckFrame>();
    REQUIRE(acks.size() == 1);
    CHECK(acks[0].entries.size() <= 2);
  }
  SECTION("to pings") {
    for (; sent < 10'000; ++sent) REQUIRE(peer.send(PingFrame{sent}));
    CHECK(peer.frames_of<PongFrame>().size() == 1);
  }
}

TEST_CASE("no frame exceeds the frame limit, however much there is to acknowledge") {
  HandPeer peer(Side::acceptor, 64 << 20, 20'000);
  for (std::uint64_t n = 1; n < 30'000; n += 2) {
    const StreamId id(n);
    REQUIRE(peer.send_stream(id, 0, joined({open_record(some_request()), record(RecordType::abort)})));
    peer.session.release(id);
  }
  CHECK(peer.session.state().live_streams == 0);
  CHECK(peer.frames_of<AckFrame>().size() > 10);
  CHECK(peer.largest_frame <= kMaxFrameBody);
}

TEST_CASE("unread module messages are limited by credit, empty ones too") {
  HandPeer peer(Side::acceptor, 1 << 20, 16);
  REQUIRE(peer.send_stream(1_stream, 0, open_record(some_request())));
  Stream& stream = *peer.session.find(1_stream);
  std::uint64_t offset = stream.reader().wire_received().number(), sent = 0;
  Buffer message = record(RecordType::module);
  Result<void> taken;
  for (; taken && sent < 1'000'000; ++sent, offset += message.size())
    taken = peer.send_stream(1_stream, offset, message);
  REQUIRE_FALSE(taken);
  CHECK(taken.error() == LinkError::credit_exceeded);
  CHECK(sent * kMessageOverhead < (1u << 20));
}

TEST_CASE("streams beyond the limit are reset and the session continues") {
  HandPeer peer(Side::acceptor, 8 << 20, 4);
  for (std::uint64_t id = 1; id <= 11; id += 2)
    REQUIRE(peer.send_stream(StreamId(id), 0, open_record(some_request())));
  auto resets = peer.frames_of<ResetFrame>();
  REQUIRE(resets.size() == 2);
  CHECK(resets[0].stream == 9_stream);
  CHECK(resets[1].stream == 11_stream);
  CHECK(peer.events_of(9_stream).empty());
  for (const auto& reset : resets) REQUIRE(peer.send(ResetDoneFrame{reset.stream}));
  CHECK(peer.session.state().live_streams == 4);
  // With one gone there is room for the next.
  peer.session.release(1_stream);
  REQUIRE(peer.send(ResetDoneFrame{1_stream}));
  REQUIRE(peer.send_stream(13_stream, 0, open_record(some_request())));
  CHECK(peer.frames_of<ResetFrame>().size() <= 1);
  CHECK(peer.session.find(13_stream));
}

TEST_CASE("an acknowledgement of bytes that were never sent frees nothing") {
  HandPeer peer(Side::dialler);
  peer.session.open(some_request(), peer.now);
  std::uint64_t kept = peer.session.state().retained_bytes;
  REQUIRE(peer.send(
      AckFrame{{{1_stream, 1'000'000_offset}, {0_stream, StreamOffset(kMaxVarint)}, {77_stream, 5_offset}}}));
  CHECK(peer.session.state().retained_bytes == kept);
  peer.frames();
  REQUIRE(peer.send(AckFrame{{{1_stream, StreamOffset(kMaxVarint)}}}));
  CHECK(peer.session.state().retained_bytes == kept);
  CHECK(peer.retained.used_bytes() == kept);
}

TEST_CASE("a protocol violation ends the session") {
  HandPeer peer;
  REQUIRE(peer.send_stream(1_stream, 0, open_record(some_request())));
  peer.events();
  Buffer unknown{std::byte{200}, std::byte{0}};
  CHECK_FALSE(
      peer.send_stream(1_stream, peer.session.find(1_stream)->reader().wire_received().number(), unknown));
  auto events = peer.events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == Event::Kind::expired);
  CHECK_FALSE(peer.session.end_streams(1));
  CHECK(peer.events_of(1_stream) == std::vector{EventKind::reset});
  CHECK_FALSE(peer.session.outgoing().wants_to_transmit(peer.carrier, peer.now));
  CHECK_FALSE(peer.session.next_timeout());
}

TEST_CASE("input that no honest peer sends is an error") {
  HandPeer peer(Side::dialler);
  peer.session.open(some_request(), peer.now);
  SECTION("data for a stream of ours that was never opened") {
    CHECK(peer.send_stream(3_stream, 0, Buffer(1)).error() == LinkError::unknown_stream);
  }
  SECTION("data before the answer") {
    CHECK_FALSE(peer.send_stream(1_stream, 0, record(RecordType::data, Buffer(1))));
  }
  SECTION("two answers") {
    CHECK_FALSE(peer.send_stream(1_stream, 0, joined({answer_record(), answer_record()})));
  }
  SECTION("an open of a stream of ours") {
    CHECK_FALSE(peer.send_stream(1_stream, 0, open_record(some_request())));
  }
  SECTION("data behind the end") {
    CHECK_FALSE(peer.send_stream(
        1_stream, 0,
        joined({answer_record(), record(RecordType::end), record(RecordType::data, Buffer(1))})));
  }
  SECTION("an end before the open") { CHECK_FALSE(peer.send_stream(2_stream, 0, record(RecordType::end))); }
  SECTION("a reset of the control stream") {
    CHECK_FALSE(peer.send(ResetFrame{0_stream, ResetCode::aborted}));
  }
  SECTION("more first credit than was set aside") {
    OpenRequest greedy = some_request();
    greedy.forward_credit = 1ull << 40;
    CHECK(peer.send_stream(2_stream, 0, open_record(greedy)).error() == LinkError::credit_exceeded);
  }
  SECTION("raw bytes on the control stream") {
    CHECK_FALSE(peer.send_stream(0_stream, 1'000'000, Buffer(1)).has_error());
    CHECK_FALSE(peer.send_stream(0_stream, 0, record(RecordType::data, Buffer(1))));
  }
}
