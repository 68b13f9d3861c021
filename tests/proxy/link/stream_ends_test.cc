// SPDX-License-Identifier: Apache-2.0
// How streams end: end, abort, reset and "no reader" from either side, in every order, over carriers that
// come and go; and that whatever is left of them is forgotten.
#include "hand_peer.h"
#include "simulated_flow.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;

TEST_CASE("an end or an abort may replace the answer") {
  HandPeer peer(Side::dialler);
  Stream& stream = peer.session.open(some_request(), peer.now);
  SECTION("abort") {
    REQUIRE(peer.send_stream(1_stream, 0, record(RecordType::abort)));
    CHECK(stream.reader().state() == ReadState::aborted);
  }
  SECTION("end") {
    REQUIRE(peer.send_stream(1_stream, 0, record(RecordType::end)));
    CHECK(stream.reader().state() == ReadState::ended);
  }
  CHECK(peer.events_of(1_stream) == std::vector{EventKind::readable});
}

TEST_CASE("data that was written and ended arrives although 'no reader' overtakes the open") {
  Pair pair;
  Stream& here = pair.a.session.open(FlowsOnPair::simple_request(), pair.now());
  // Credit is known from an earlier carrier.
  CarrierId first = pair.connect();
  pair.run_for(200ms);
  pair.cut(first);
  here.reset(ResetCode::aborted);
  pair.a.session.release(here.id());

  Stream& next = pair.a.session.open(FlowsOnPair::simple_request(), pair.now());
  StreamId id = next.id();
  next.writer().write(as_bytes("the last words"));
  next.writer().end();
  next.abort();
  pair.a.session.release(id);
  pair.connect();
  pair.run_for(200ms);
  Stream* there = pair.b.session.find(id);
  REQUIRE(there);
  REQUIRE(there->begun());
  CHECK(there->reader().readable().size() == 14);
  CHECK(there->reader().state() == ReadState::ended);
  std::vector<EventKind> told;
  for (const Event& event : pair.b.events)
    if (event.kind == Event::Kind::stream && event.stream == id) told.push_back(event.stream_event);
  REQUIRE(told.size() >= 2);
  CHECK(told[0] == EventKind::opened);
  CHECK(told[1] == EventKind::stopped);
  pair.b.session.release(id);
  pair.run_for(200ms);
  CHECK(pair.a.session.state().live_streams == 0);
  CHECK(pair.b.session.state().live_streams <= 1);
}

TEST_CASE("data that was written and ended arrives although nobody reads what the peer has sent and ended") {
  Pair pair;
  pair.connect();
  Stream& here = pair.a.session.open(FlowsOnPair::simple_request(), pair.now());
  const StreamId id = here.id();
  pair.run_for(200ms);
  Stream* there = pair.b.session.find(id);
  REQUIRE(there);
  there->give_answer({});
  there->writer().write(as_bytes("never read"));
  there->writer().end();
  pair.run_for(200ms);
  REQUIRE(here.reader().state() == ReadState::ended);
  REQUIRE(here.reader().readable().size() == 10);
  here.writer().write(as_bytes("the last words"));
  here.writer().end();
  here.abort();
  pair.a.session.release(id);
  pair.run_for(200ms);
  CHECK(there->reader().readable().size() == 14);
  CHECK(there->reader().state() == ReadState::ended);
  for (const Event& event : pair.b.events)
    if (event.kind == Event::Kind::stream && event.stream == id)
      CHECK(event.stream_event != EventKind::reset);
  there->reader().consume(14, pair.now(), {});
  pair.b.session.release(id);
  pair.run_for(200ms);
  CHECK(pair.a.session.state().live_streams == 0);
  CHECK(pair.b.session.state().live_streams == 0);
}

TEST_CASE("a stream that the peer has stopped can still be given up here") {
  HandPeer peer;
  REQUIRE(peer.send_stream(1_stream, 0, open_record(some_request())));
  Stream& stream = *peer.session.find(1_stream);
  stream.give_answer({});
  REQUIRE(peer.send(ResetFrame{1_stream, ResetCode::no_reader}));
  SECTION("by a reset") { stream.reset(ResetCode::aborted); }
  SECTION("by an abort") { stream.abort(); }
  SECTION("by a release") {}
  peer.session.release(1_stream);
  CHECK(peer.frames_of<ResetFrame>().size() == 1);
  REQUIRE(peer.send(ResetDoneFrame{1_stream}));
  CHECK(peer.session.state().live_streams == 0);
  CHECK(peer.pool.granted_bytes() == HandPeer().pool.granted_bytes());
}

TEST_CASE("if both sides send a reset at once, with any codes, the stream ends on both") {
  for (ResetCode code : {ResetCode::aborted, ResetCode::no_reader, ResetCode::undecodable}) {
    HandPeer peer;
    REQUIRE(peer.send_stream(1_stream, 0, open_record(some_request())));
    peer.session.find(1_stream)->give_answer({});
    peer.session.find(1_stream)->reset(ResetCode::aborted);
    peer.session.release(1_stream);
    REQUIRE(peer.send(ResetFrame{1_stream, code}));
    auto resets = peer.frames_of<ResetFrame>();
    REQUIRE(resets.size() == 1);
    CHECK(resets[0].code == ResetCode::aborted);
    REQUIRE(peer.send(ResetDoneFrame{1_stream}));
    CHECK(peer.session.state().live_streams == 0);
  }
}

TEST_CASE("the credit of an open that is never sent is returned") {
  Pair pair({.credit_bytes = 64 << 20});
  CarrierId first = pair.connect();
  pair.run_for(1s);
  auto first_credit = [&] {
    Stream& stream = pair.a.session.open(FlowsOnPair::simple_request(), pair.now());
    std::uint64_t credit = stream.request().forward_credit;
    stream.reset(ResetCode::aborted);
    pair.a.session.release(stream.id());
    return credit;
  };
  std::uint64_t at_first = first_credit();
  CHECK(at_first > pair.b.pool.floor_bytes());
  for (int round = 0; round < 5; ++round) {
    pair.cut(first);
    for (int i = 0; i < 50; ++i) first_credit();
    first = pair.connect();
    pair.run_for(2s);
  }
  CHECK(pair.a.session.state().live_streams == 0);
  CHECK(pair.b.session.state().live_streams == 0);
  CHECK(first_credit() > at_first / 2);
}

TEST_CASE("a flow after a quiet second starts with the full share, whatever earlier flows used") {
  Pair pair;
  FlowsOnPair flows(pair);
  pair.connect();
  pair.run_for(1s);
  std::uint64_t at_first = 0;
  for (int turn = 0; turn < 5; ++turn) {
    INFO("turn " << turn);
    // Large enough for its window to grow, and with it what is taken of the pool.
    Flow& flow = flows.start(20'000'000, 1000);
    const std::uint64_t credit = pair.a.session.find(flow.id)->request().forward_credit;
    if (turn == 0) at_first = credit;
    CHECK(credit == at_first);
    REQUIRE(pair.run_until([&] { return flow.complete(); }, 60s));
    CHECK(flow.right());
    pair.run_for(2s);
    REQUIRE(pair.b.session.state().live_streams == 0);
  }
}

TEST_CASE("streams without a flow are removed when the session is abandoned") {
  HandPeer peer(Side::dialler);
  Stream& stream = peer.session.open(some_request(), peer.now);
  stream.abort();
  peer.session.release(1_stream);
  CHECK(peer.session.state().live_streams == 1);  // until the abort is acknowledged
  peer.session.abandon(peer.now);
  CHECK_FALSE(peer.session.end_streams(1));
  CHECK(peer.session.state().live_streams == 0);
}

TEST_CASE("a flow gets no events from a stream that it has released") {
  HandPeer peer;
  REQUIRE(peer.send_stream(1_stream, 0,
                           joined({open_record(some_request()), record(RecordType::data, Buffer(9))})));
  peer.session.release(1_stream);
  CHECK(peer.events_of(1_stream).empty());
}

TEST_CASE("an acknowledgement lost with the newest carrier is requested over the older one") {
  Pair pair;
  pair.connect();
  pair.run_for(100ms);
  Stream& here = pair.a.session.open(FlowsOnPair::simple_request(), pair.now());
  StreamId id = here.id();
  here.writer().write(as_bytes("bytes"));
  here.abort();
  pair.a.session.release(id);
  pair.run_for(19ms);  // on its way over the first
  CarrierId second = pair.connect();
  REQUIRE(pair.run_until([&] { return pair.b.session.find(id) != nullptr; }, 1s));
  pair.b.session.release(id);
  REQUIRE(pair.run_until([&] { return pair.b.session.state().live_streams == 0; }, 1s));
  pair.run_for(11ms);  // the ACK is on its way over the second
  CHECK(pair.a.session.state().live_streams == 1);
  pair.cut(second);
  pair.run_for(1s);
  CHECK(pair.a.session.state().live_streams == 0);
}

TEST_CASE("bytes that wait behind a gap are acknowledged when their stream is forgotten") {
  HandPeer peer;
  const Buffer open = open_record(some_request());
  REQUIRE(peer.send_stream(1_stream, 0, open));
  REQUIRE(peer.send_stream(1_stream, open.size() + 100, Buffer(50)));
  const auto acknowledged = [&] {
    std::uint64_t most = 0;
    for (const Frame& frame : peer.frames())
      if (auto* ack = std::get_if<AckFrame>(&frame))
        for (const auto& entry : ack->entries)
          if (entry.stream == 1_stream) most = std::max(most, entry.offset.number());
    return most;
  };
  peer.pass(1s);
  CHECK(acknowledged() == open.size());
  peer.session.find(1_stream)->abort();
  peer.session.release(1_stream);
  StreamOffset said;
  for (const Frame& frame : peer.frames())
    if (auto* bytes = std::get_if<StreamFrame>(&frame); bytes && bytes->stream == 1_stream)
      said = std::max(said, bytes->offset + bytes->payload.size());
  REQUIRE(said > 0_offset);
  REQUIRE(peer.session.state().live_streams == 1);
  // The peer has it all, so nothing of the stream is left here, and what fills the gap comes too late.
  REQUIRE(peer.send(AckFrame{{{1_stream, said}}}));
  REQUIRE(peer.session.state().live_streams == 0);
  CHECK(acknowledged() == open.size() + 150);
  REQUIRE(peer.send_stream(1_stream, open.size(), Buffer(100)));
  CHECK(acknowledged() == open.size() + 100);
}

TEST_CASE("streams are removed on both sides, however and whenever they end") {
  // What one side does to a stream, in this order, one step at a time.
  enum Step { write, end, abort, reset, release };
  const std::vector<std::vector<Step>> ways = {
      {end, release},
      {write, end, release},
      {abort, release},
      {write, abort, release},
      {reset, release},
      {write, reset, release},
      {release},
      {write, release},
      {end, abort, release},
      {write, end, abort, release},
      {end, reset, release},
      {abort, reset, release},
  };
  for (std::size_t way_a = 0; way_a < ways.size(); ++way_a)
    for (std::size_t way_b = 0; way_b < ways.size(); ++way_b)
      for (int delay = 0; delay < 4; ++delay) {
        Pair pair({.seed = 1 + way_a * 100 + way_b, .line = {.delay = 5ms, .max_piece = 20}});
        CarrierId first = pair.connect();
        pair.run_for(50ms);
        StreamId id = pair.a.session.open(FlowsOnPair::simple_request(), pair.now()).id();
        pair.run_for(10ms);
        auto act = [&](Session& session, Step step) {
          Stream* stream = session.find(id);
          if (!stream || stream->entry().released) return;
          if (&session == &pair.b.session && !stream->answer()) stream->give_answer({});
          if (step == write && stream->writer().may_write() >= 9)
            stream->writer().write(as_bytes("something"));
          if (step == end) stream->writer().end();
          if (step == abort) stream->abort();
          if (step == reset) stream->reset(ResetCode::aborted);
          // A flow lets go when it has read what there is.
          if (step == release) {
            stream->reader().consume(stream->reader().readable().size(), pair.now(), 10ms);
            session.release(id);
          }
        };
        for (std::size_t i = 0; i < 5; ++i) {
          if (i < ways[way_a].size()) act(pair.a.session, ways[way_a][i]);
          pair.run_for(std::chrono::milliseconds(2 * delay));
          if (i < ways[way_b].size()) act(pair.b.session, ways[way_b][i]);
          pair.run_for(std::chrono::milliseconds(delay));
          if (static_cast<int>(i) == delay) {
            pair.connect();
            pair.run_for(std::chrono::milliseconds(delay));
            pair.cut(first);
          }
        }
        // The open may have come later than the far side had something to do with it.
        pair.run_for(200ms);
        act(pair.a.session, release);
        act(pair.b.session, release);
        pair.run_for(500ms);
        INFO("ways " << way_a << " and " << way_b << ", delay " << delay);
        REQUIRE_FALSE(pair.a.error);
        REQUIRE_FALSE(pair.b.error);
        REQUIRE(pair.a.session.state().live_streams == 0);
        REQUIRE(pair.b.session.state().live_streams == 0);
        REQUIRE(pair.a.retained.used_bytes() == 0);
        REQUIRE(pair.b.retained.used_bytes() == 0);
      }
}

TEST_CASE("a stream removed while waiting for its turn does not block the others") {
  HandPeer peer(Side::dialler);
  REQUIRE(peer.send(OpenCreditFrame{8 << 20, 64 << 10}));
  const auto open_and_write = [&] {
    Stream& stream = peer.session.open(some_request(), peer.now);
    peer.frames();  // OPEN
    REQUIRE(stream.writer().may_write() >= 50'000);
    stream.writer().write(Buffer(50'000, std::byte{1}));
    return stream.id();
  };
  const StreamId gone = open_and_write();
  REQUIRE(peer.session.outgoing().next_stream(peer.session.preferred()));
  REQUIRE(peer.session.outgoing().next_stream(peer.session.preferred())->stream_class == StreamClass::bulk);
  peer.session.release(gone);
  // What is urgent goes, and no bulk.
  Buffer packet;
  PacketContent content;
  peer.session.outgoing().fill(peer.carrier, 1400, Outgoing::Streams::interactive, packet, content, peer.now);
  REQUIRE(peer.send(ResetDoneFrame{gone}));
  REQUIRE_FALSE(peer.session.find(gone));
  CHECK_FALSE(peer.session.outgoing().next_stream(peer.session.preferred()));
  CHECK_FALSE(peer.session.outgoing().wants_to_transmit(peer.carrier, peer.now));
  open_and_write();
  REQUIRE(peer.session.outgoing().next_stream(peer.session.preferred()));
  CHECK(peer.session.outgoing().next_stream(peer.session.preferred())->stream_class == StreamClass::bulk);
}
