// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/incoming.h"

#include <catch2/catch.hpp>

#include "session_parts.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::testing;
using simulation::record;

TEST_CASE("a stream begins with its first frame, is acknowledged, and its bytes are read") {
  SessionParts parts;
  const Buffer hello = record(RecordType::data, as_bytes("hello"));
  REQUIRE(parts.receive_open(1_stream, hello));
  Stream* stream = parts.streams.find(1_stream);
  REQUIRE(stream);
  CHECK(stream->begun());
  CHECK(stream->request().destination.port == 445);
  CHECK(stream->reader().readable().size() == 5);
  parts.context.now += std::chrono::seconds(1);
  const auto acks = parts.sent<AckFrame>();
  REQUIRE(acks.size() == 1);
  REQUIRE(acks[0].entries.size() == 1);
  CHECK(acks[0].entries[0].offset == stream->reader().wire_received());
}

TEST_CASE(
    "frames of streams that nobody has opened are an error, of ended ones they are acknowledged again") {
  SessionParts parts(Side::acceptor);
  const Buffer some(10);
  CHECK(parts.receive(StreamFrame{2_stream, 0_offset, some}).error() == LinkError::unknown_stream);
  SessionParts other;
  REQUIRE(other.receive_open(1_stream));
  other.lifetimes.release(1_stream);
  REQUIRE(other.receive(ResetDoneFrame{1_stream}));
  (void)other.sent<AckFrame>();
  REQUIRE(other.receive(StreamFrame{1_stream, 0_offset, some}));
  const auto acks = other.sent<AckFrame>();
  REQUIRE(acks.size() == 1);
  CHECK(acks[0].entries[0].stream == 1_stream);
  CHECK(acks[0].entries[0].offset == 10_offset);
}

TEST_CASE("acknowledgements, credit and resets of streams that are gone have no effect") {
  SessionParts parts;
  CHECK(parts.receive(AckFrame{{{1_stream, 100_offset}, {2_stream, 100_offset}}}));
  CHECK(parts.receive(CreditFrame{{{1_stream, 1, 100}, {2_stream, 1, 100}}}));
  CHECK(parts.receive(CreditReturnFrame{1_stream, 1, 100}));
  CHECK(parts.receive(ResetDoneFrame{1_stream}));
  CHECK(parts.receive(ResetFrame{2_stream, ResetCode::aborted}));
  CHECK(parts.streams.empty());
  CHECK(parts.sent<ResetDoneFrame>().size() == 1);
  CHECK(parts.receive(ResetFrame{kControlStream, ResetCode::aborted}).error() == LinkError::malformed_frame);
}

TEST_CASE("the peer's features and its reason for an end are known, and told") {
  SessionParts parts;
  config::Features features;
  features.compression = false;
  Buffer body;
  write_features(features, body);
  REQUIRE(parts.receive(StreamFrame{kControlStream, 0_offset, record(RecordType::allowed, body)}));
  CHECK_FALSE(parts.incoming.peer_allowed().compression);
  REQUIRE(parts.receive(CloseFrame{CloseCode::shutting_down, "bye"}));
  CHECK(parts.incoming.close_reason().text == "bye");
  auto event = parts.events.poll();
  REQUIRE(event);
  CHECK(event->kind == Event::Kind::peer_allows);
  event = parts.events.poll();
  REQUIRE(event);
  CHECK(event->kind == Event::Kind::peer_closing);
}

TEST_CASE("records that belong to flows are malformed on the control stream") {
  for (const RecordType type : {RecordType::open, RecordType::answer}) {
    SessionParts parts;
    CHECK_FALSE(parts.receive(StreamFrame{kControlStream, 0_offset, record(type, Buffer(3))}));
  }
}

TEST_CASE("a stream that reads later is read in another turn, once") {
  SessionParts parts;
  REQUIRE(parts.receive_open(1_stream));
  Stream* stream = parts.streams.find(1_stream);
  REQUIRE(stream);
  CHECK_FALSE(parts.incoming.has_work_left());
  parts.incoming.reads_later(stream->entry());
  parts.incoming.reads_later(stream->entry());
  CHECK(parts.incoming.has_work_left());
  REQUIRE(parts.incoming.go_on());
  CHECK_FALSE(parts.incoming.has_work_left());
  CHECK_FALSE(stream->entry().reads_later);
}
