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
  parts.outgoing.wants_to_send(stream.entry(), stream.writer().output(), Outgoing::Turn::last);
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
  CHECK_FALSE(parts.outgoing.next_stream(SessionParts::kCarrier));
  Stream& stream = start_flow(parts);
  const auto next = parts.outgoing.next_stream(SessionParts::kCarrier);
  REQUIRE(next);
  CHECK(next->stream_class == StreamClass::interactive);
  parts.streams.erase(stream.id());
  CHECK_FALSE(parts.outgoing.next_stream(SessionParts::kCarrier));
}

TEST_CASE("a helper gets bytes of a bulk stream with enough to send, and nothing else") {
  constexpr CarrierId kHelper{2};
  SessionParts parts;
  parts.carriers.add(kHelper, false);
  parts.context.unsent_limit = 256 * 1024;
  Stream& small = start_flow(parts);
  parts.due.pong(7);
  Buffer out;
  PacketContent content;
  const auto fill = [&] {
    out.clear();
    content.clear();
    parts.outgoing.fill(kHelper, 1200, Outgoing::Streams::all, out, content, parts.context.now);
    return out.size();
  };
  CHECK(fill() == 0);  // it is no helper yet
  parts.carriers.find(kHelper)->helps_above = 10'000;
  CHECK(fill() == 0);  // control frames and an interactive stream wait
  Stream& large = start_flow(parts);
  parts.outgoing.transmit(SessionParts::kCarrier, 1 << 20, 1400, out, parts.context.now);
  large.writer().on_credit(1, 1 << 20);
  large.writer().write(Buffer(100'000));
  parts.outgoing.wants_to_send(large.entry(), large.writer().output(), Outgoing::Turn::last);
  REQUIRE(parts.outgoing.next_stream(kHelper));
  CHECK(parts.outgoing.next_stream(kHelper)->stream_class == StreamClass::bulk);
  REQUIRE(fill() > 1000);
  REQUIRE(content.ranges.size() == 1);
  CHECK(content.ranges[0].stream == large.id());
  CHECK(content.control.empty());
  // What was lost is left to the preferred carrier, and so is the end.
  parts.outgoing.on_lost(kHelper, content, parts.context.now);
  CHECK(fill() == 0);
  while (large.writer().output().unsent_bytes() > 20'000) {
    PacketContent sent;
    out.clear();
    parts.outgoing.fill(SessionParts::kCarrier, 1200, Outgoing::Streams::all, out, sent, parts.context.now);
    REQUIRE_FALSE(out.empty());
  }
  std::size_t helped = 0;
  while (fill() > 0) helped += out.size();
  CHECK(helped > 5'000);
  CHECK(large.writer().output().unsent_bytes() <= 10'000);
  CHECK(large.writer().output().unsent_bytes() > 5'000);
  CHECK(small.writer().output().sending().end_offset() > 0_offset);
}

TEST_CASE("a carrier takes the streams of its policies alone") {
  constexpr CarrierId kOther{2};
  SessionParts parts;
  parts.carriers.add(kOther, false);
  PathRoutes routes;
  routes.carriers[static_cast<std::size_t>(config::PathPolicy::failover)] = kOther;
  parts.carriers.route(routes);
  const Stream& usual = start_flow(parts);
  OpenRequest request = simulation::some_request();
  request.features.paths = config::PathUse::failover;
  Stream& elsewhere = parts.lifetimes.open(std::move(request));
  CHECK_FALSE(parts.outgoing.asked_for(config::PathPolicy::failover, parts.context.now));
  parts.outgoing.wants_to_send(elsewhere.entry(), elsewhere.writer().output(), Outgoing::Turn::last);
  CHECK(parts.outgoing.asked_for(config::PathPolicy::failover, parts.context.now));
  CHECK_FALSE(parts.outgoing.asked_for(config::PathPolicy::failover, parts.context.now + Outgoing::kAsked));
  const auto sent_on = [&](CarrierId carrier) {
    Buffer out;
    PacketContent content;
    parts.outgoing.fill(carrier, 1200, Outgoing::Streams::all, out, content, parts.context.now);
    std::vector<StreamId> streams;
    for (const auto& range : content.ranges) streams.push_back(range.stream);
    return streams;
  };
  CHECK(sent_on(kOther) == std::vector<StreamId>{elsewhere.id()});
  CHECK(sent_on(SessionParts::kCarrier) == std::vector<StreamId>{usual.id()});
  CHECK(sent_on(kOther).empty());
}

TEST_CASE("copies of what is in flight go on the second carrier, and the first one repeats what it loses") {
  constexpr CarrierId kSecond{2};
  SessionParts parts;
  parts.carriers.add(kSecond, false);
  Stream& stream = start_flow(parts);
  Buffer out, copied;
  PacketContent first, second;
  const TimePoint now = parts.context.now;
  parts.due.write(out);  // what is not to be copied
  out.clear();
  parts.outgoing.fill(SessionParts::kCarrier, 1200, Outgoing::Streams::all, out, first, now);
  REQUIRE(first.ranges.size() == 1);
  parts.outgoing.copy(first, now);
  CHECK_FALSE(parts.outgoing.wants_to_transmit(kSecond, now));
  parts.outgoing.copy_on(kSecond);
  parts.outgoing.copy(first, now);
  REQUIRE(parts.outgoing.wants_to_transmit(kSecond, now));
  parts.outgoing.fill(kSecond, 1200, Outgoing::Streams::all, copied, second, now);
  CHECK(copied == out);
  REQUIRE(second.ranges.size() == 1);
  CHECK(second.ranges[0].bytes == first.ranges[0].bytes);
  // Bytes that are sent while there is a second carrier are copied at once.
  stream.writer().end();
  parts.outgoing.wants_to_send(stream.entry(), stream.writer().output(), Outgoing::Turn::last);
  out.clear();
  copied.clear();
  parts.outgoing.fill(SessionParts::kCarrier, 1200, Outgoing::Streams::all, out, first, now);
  parts.outgoing.fill(kSecond, 1200, Outgoing::Streams::all, copied, second, now);
  CHECK_FALSE(out.empty());
  CHECK(copied == out);
  // The loss of a copy means nothing.
  parts.outgoing.on_lost(kSecond, second, now);
  CHECK_FALSE(stream.writer().output().sending().repeats());
  parts.outgoing.on_lost(SessionParts::kCarrier, first, now);
  CHECK(stream.writer().output().sending().repeats());
  // Acknowledged bytes are not copied.
  stream.writer().on_acknowledged(stream.writer().output().sending().ever_sent());
  parts.outgoing.copy(first, now);
  copied.clear();
  parts.outgoing.fill(kSecond, 1200, Outgoing::Streams::all, copied, second, now);
  CHECK(copied.empty());
}
