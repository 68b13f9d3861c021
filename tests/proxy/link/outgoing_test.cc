// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/outgoing.h"

#include <catch2/catch.hpp>

#include "session_parts.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::testing;

namespace {

// A flow of this side with its OPEN to send.
Stream& start_flow(SessionParts& parts) {
  Stream& stream = parts.lifetimes.open(simulation::some_request());
  parts.outgoing.wants_to_send(stream, Outgoing::Turn::last);
  return stream;
}

}  // namespace

TEST_CASE("only the preferred carrier gets something to send, and nothing after the end") {
  SessionParts parts;
  start_flow(parts);
  CHECK(parts.outgoing.wants_to_transmit(SessionParts::kCarrier, parts.context.now));
  CHECK_FALSE(parts.outgoing.wants_to_transmit(CarrierId(2), parts.context.now));
  Buffer out;
  parts.outgoing.transmit(CarrierId(2), 1 << 20, 1400, out, parts.context.now);
  CHECK(out.empty());
  parts.outgoing.stop();
  parts.outgoing.transmit(SessionParts::kCarrier, 1 << 20, 1400, out, parts.context.now);
  CHECK(out.empty());
}

TEST_CASE("control frames precede streams, and the control stream precedes flows") {
  SessionParts parts;
  Stream& stream = start_flow(parts);
  parts.control.write(RecordType::dictionary, Buffer(10));
  parts.due.pong(7);
  Buffer out;
  parts.outgoing.transmit(SessionParts::kCarrier, 1 << 20, 1400, out, parts.context.now);
  std::vector<StreamId> order;
  bool ponged_first = false;
  for (Bytes rest = out; !rest.empty();) {
    const auto parsed = parse_frame(rest);
    REQUIRE((parsed && *parsed));
    const Frame& frame = *(*parsed)->frame;
    if (const auto* bytes = std::get_if<StreamFrame>(&frame)) order.push_back(bytes->stream);
    if (std::holds_alternative<PongFrame>(frame)) ponged_first = order.empty();
    rest = rest.subspan((*parsed)->consumed);
  }
  CHECK(ponged_first);
  CHECK(order == std::vector<StreamId>{kControlStream, stream.id()});
}

TEST_CASE("a lost packet's content is sent again, unless it arrives after all") {
  const bool arrives = GENERATE(false, true);
  SessionParts parts;
  Stream& stream = start_flow(parts);
  const auto fill = [&](PacketContent& content) {
    Buffer out;
    parts.outgoing.fill(SessionParts::kCarrier, 1200, Outgoing::Streams::all, out, content,
                        parts.context.now);
    CHECK(out.size() <= 1200);
    return out;
  };
  PacketContent first;
  const Buffer packet = fill(first);
  REQUIRE_FALSE(first.ranges.empty());
  PacketContent nothing;
  CHECK(fill(nothing).empty());
  parts.outgoing.on_lost(SessionParts::kCarrier, first, parts.context.now);
  if (arrives) parts.outgoing.on_arrived(first);
  PacketContent again;
  fill(again);
  const bool repeated = std::ranges::any_of(
      again.ranges, [&](const PacketContent::Range& range) { return range.stream == stream.id(); });
  CHECK(repeated == !arrives);
}

TEST_CASE("the next stream is named, and a stream that was forgotten while it waited is not") {
  SessionParts parts;
  CHECK_FALSE(parts.outgoing.next_stream());
  Stream& stream = start_flow(parts);
  const auto next = parts.outgoing.next_stream();
  REQUIRE(next);
  CHECK(next->stream_class == StreamClass::interactive);
  parts.streams.erase(stream.id());
  CHECK_FALSE(parts.outgoing.next_stream());
}
