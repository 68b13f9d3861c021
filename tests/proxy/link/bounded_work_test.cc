// SPDX-License-Identifier: Apache-2.0
// One turn of the loop does a bounded amount of work for a peer; what is left comes to the same end in later
// turns, and what waits is bounded by what the peer was granted.
#include <catch2/catch.hpp>
#include <string>

#include "hand_peer.h"
#include "toy_codec.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;

namespace {

constexpr std::uint64_t kWork = 300'000;  // of a turn: a few streams opened

struct Bounded {
  explicit Bounded(std::uint64_t cap = 8 << 20, BlockCodec* codec = nullptr)
      : pool(cap, 1000),
        retained(cap),
        session({.side = Side::acceptor, .max_peer_streams = 1000, .work_per_turn = kWork}, pool, retained,
                codec, now) {
    session.attach(CarrierId(1), now, 20ms);
    Buffer out;
    session.outgoing().transmit(CarrierId(1), 1 << 20, 16 * 1024, out, now);
  }

  Result<void> send(const Frame& frame) {
    Buffer bytes;
    write_frame(frame, bytes);
    return session.receive(CarrierId(1), bytes, now);
  }
  Result<void> send_stream(StreamId stream, std::uint64_t offset, const Buffer& bytes) {
    return send(StreamFrame{stream, StreamOffset(offset), bytes});
  }
  int events_of(EventKind kind) {
    int count = 0;
    while (auto event = session.poll_event())
      count += event->kind == Event::Kind::stream && event->stream_event == kind;
    return count;
  }
  // As many turns as it takes.
  int finish() {
    int turns = 0;
    for (; session.state().has_work_left; ++turns) {
      session.work().begin_turn();
      const std::uint64_t before = work_done;
      REQUIRE(session.go_on(now));
      CHECK(work_done - before < kWork + 200'000);
      REQUIRE(turns < 100'000);
    }
    return turns;
  }

  TimePoint now{std::chrono::hours(1)};
  CreditPool pool;
  RetainedBudget retained;
  Session session;
};

Buffer features_record(StreamId stream, bool compression) {
  Buffer body;
  ByteWriter(body).varint(stream.number());
  config::Features features;
  features.compression = compression;
  write_features(features, body);
  return record(RecordType::features, body);
}

}  // namespace

TEST_CASE("streams beyond the work limit of a turn are opened in later turns") {
  Bounded bounded;
  for (std::uint64_t id = 1; id < 200; id += 2)
    REQUIRE(bounded.send_stream(StreamId(id), 0, open_record(some_request())));
  const int at_once = bounded.events_of(EventKind::opened);
  CHECK(at_once > 0);
  CHECK(at_once < 10);
  CHECK(bounded.session.state().has_work_left);
  CHECK(bounded.session.work().used_up());
  CHECK(bounded.finish() > 10);
  CHECK(at_once + bounded.events_of(EventKind::opened) == 100);
}

TEST_CASE("data of a stream beyond the limit of a turn is read in order, whatever arrives meanwhile") {
  ToyCodec maker, codec;
  Bounded bounded(8 << 20, &codec);
  std::string sent;
  OpenRequest request = some_request();
  request.forward_credit = 100'000;
  Buffer wire = open_record(request);
  for (int i = 0; i < 3000; ++i) {
    const std::string text = "block " + std::to_string(i) + ";";
    sent += text;
    if (i % 3 == 0) {
      const Buffer data = record(RecordType::data, as_bytes(text));
      append(wire, data);
      continue;
    }
    Buffer encoded, head, body;
    auto header = maker.encode(1, {}, as_bytes(text), encoded);
    write_block_header(*header, body);
    append(body, encoded);
    append(wire, record(RecordType::block, body));
  }
  append(wire, record(RecordType::end));
  std::string got;
  auto read = [&] {
    Stream* stream = bounded.session.find(1_stream);
    if (!stream) return;
    while (!stream->reader().readable().empty()) {
      Slice piece = stream->reader().readable().front();
      got += as_text(piece.bytes());
      stream->reader().consume(piece.size(), bounded.now, 20ms);
    }
  };
  int waited = 0;
  for (std::size_t at = 0; at < wire.size(); at += 1000) {
    const Bytes piece = Bytes(wire).subspan(at, std::min<std::size_t>(1000, wire.size() - at));
    REQUIRE(bounded.send_stream(1_stream, at, Buffer(piece.begin(), piece.end())));
    waited += bounded.session.state().has_work_left;
    if (at % 70'000 == 0) {
      bounded.session.work().begin_turn();
      REQUIRE(bounded.session.go_on(bounded.now));
    }
    read();
  }
  CHECK(waited > 0);
  bounded.finish();
  read();
  CHECK(got == sent);
  CHECK(bounded.session.find(1_stream)->reader().state() == ReadState::ended);
  CHECK(codec.broken.empty());
}

TEST_CASE("the control stream takes turns like any other stream") {
  Bounded bounded;
  REQUIRE(bounded.send_stream(1_stream, 0, open_record(some_request())));
  bounded.finish();
  bounded.events_of(EventKind::opened);
  bounded.session.work().begin_turn();
  Buffer wire;
  for (int i = 0; i < 4000; ++i) append(wire, features_record(1_stream, i % 2 == 0));
  append(wire, features_record(1_stream, true));
  for (std::size_t at = 0; at < wire.size(); at += 30'000) {
    const Bytes piece = Bytes(wire).subspan(at, std::min<std::size_t>(30'000, wire.size() - at));
    REQUIRE(bounded.send_stream(0_stream, at, Buffer(piece.begin(), piece.end())));
  }
  CHECK(bounded.session.state().has_work_left);
  bounded.finish();
  CHECK(bounded.session.find(1_stream)->request().features.compression);
  // However often they changed.
  CHECK(bounded.events_of(EventKind::features) == 1);
}

TEST_CASE("a change of the peer's features is reported once, however often it changes") {
  HandPeer peer;
  std::uint64_t at = 0;
  for (int i = 0; i < 1000; ++i) {
    Buffer body;
    config::Features features;
    features.compression = i % 2;
    write_features(features, body);
    const Buffer bytes = record(RecordType::allowed, body);
    REQUIRE(peer.send_stream(0_stream, at, bytes));
    at += bytes.size();
  }
  CHECK(peer.events().size() == 1);
  CHECK(peer.session.incoming().peer_allowed().compression);
}

TEST_CASE("a stream that is reset while it waits for its turn ends at once") {
  Bounded bounded;
  for (std::uint64_t n = 1; n < 40; n += 2) {
    const StreamId id(n);
    REQUIRE(bounded.send_stream(id, 0, open_record(some_request())));
    REQUIRE(bounded.send(ResetFrame{id, ResetCode::aborted}));
  }
  bounded.finish();
  while (auto event = bounded.session.poll_event())
    if (event->stream_event == EventKind::reset) bounded.session.release(event->stream);
  CHECK(bounded.session.state().live_streams == 0);
}

TEST_CASE("records that never end count with the memory they use") {
  HandPeer peer(Side::acceptor, 64 << 20, 10'000);
  std::uint64_t held = 0;
  Result<void> taken;
  for (std::uint64_t id = 1; taken && id < 20'000; id += 2) {
    Buffer bytes = open_record(some_request());
    write_record_head(RecordType::block, 69'000, bytes);
    bytes.resize(bytes.size() + 60'000);
    taken = peer.send_stream(StreamId(id), 0, bytes);
    held += bytes.size();
  }
  REQUIRE_FALSE(taken);
  CHECK(taken.error() == LinkError::too_fragmented);
  CHECK(held < (64u << 20));
}

TEST_CASE("an OPEN is at most 4,096 bytes long") {
  HandPeer peer;
  Buffer head;
  write_record_head(RecordType::open, kMaxShortRecordBody + 1, head);
  CHECK(peer.send_stream(1_stream, 0, head).error() == LinkError::malformed_record);
}

TEST_CASE("incomplete OPENs that never end are bounded by their memory") {
  HandPeer peer(Side::acceptor, 24 << 20, 16'640);
  Buffer part;
  write_record_head(RecordType::open, kMaxShortRecordBody, part);
  part.resize(part.size() + 4000);
  std::uint64_t streams = 0;
  while (streams < 100'000 && peer.send_stream(StreamId(2 * streams + 1), 0, part)) ++streams;
  CHECK(streams * part.size() < (24u << 20));
}

TEST_CASE("the number of streams with an incomplete OPEN is limited, however much memory there is") {
  HandPeer peer(Side::acceptor, 1ull << 30, 16'640);
  const Buffer open = open_record(some_request());
  const Buffer begun(open.begin(), open.end() - 1), rest(open.end() - 1, open.end());
  for (std::uint64_t n = 0; n < 4096; ++n) REQUIRE(peer.send_stream(StreamId(2 * n + 1), 0, begun));
  // Each that comes whole, is reset or was refused makes room for another.
  REQUIRE(peer.send_stream(1_stream, open.size() - 1, rest));
  REQUIRE(peer.send_stream(StreamId(2 * 4096 + 1), 0, begun));
  REQUIRE(peer.send(ResetFrame{3_stream, ResetCode::aborted}));
  REQUIRE(peer.send_stream(StreamId(2 * 4097 + 1), 0, begun));
  for (std::uint64_t n = 5000; n < 9000; ++n) REQUIRE(peer.send_stream(StreamId(2 * n + 1), 0, open));
  CHECK(peer.send_stream(StreamId(2 * 4098 + 1), 0, begun).error() == LinkError::too_many_streams);
}

TEST_CASE("ended streams that the peer does not confirm are bounded") {
  HandPeer peer(Side::acceptor, 4 << 20, 65'536);
  const Buffer open = open_record(some_request());
  std::uint64_t streams = 0;
  while (streams < 100'000 && peer.send_stream(StreamId(2 * streams + 1), 0, open)) {
    const StreamId id(2 * streams + 1);
    peer.session.find(id)->reset(ResetCode::aborted);
    peer.session.release(id);
    ++streams;
  }
  CHECK(streams < 5000);
  CHECK(streams > 1000);
}

TEST_CASE("bytes behind a gap in an unread stream are acknowledged and not stored") {
  HandPeer peer(Side::acceptor, 1 << 20, 16);
  const Buffer open = open_record(some_request());
  REQUIRE(peer.send_stream(1_stream, 0, open));
  peer.session.find(1_stream)->abort();
  // Far more than the cap.
  std::uint64_t at = open.size() + 1;
  for (int i = 0; i < 100; ++i, at += 60'000) REQUIRE(peer.send_stream(1_stream, at, Buffer(60'000)));
  REQUIRE(peer.send_stream(1_stream, open.size(), Buffer(1)));
  if (Stream* stream = peer.session.find(1_stream))
    CHECK(stream->reader().wire_received() == StreamOffset(at));
}
