// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/session.h"

#include <catch2/catch.hpp>

#include "simulated_flow.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;

TEST_CASE("bytes flow in both directions and the flow is removed on both sides") {
  Pair pair;
  FlowsOnPair flows(pair);
  pair.connect();
  Flow& flow = flows.start(300'000, 2'000'000);
  REQUIRE(pair.run_until([&] { return flow.complete(); }, 10s));
  CHECK(flow.right());
  CHECK(flow.answered);
  pair.run_for(1s);
  CHECK(pair.a.session.state().live_streams == 0);
  CHECK(pair.b.session.state().live_streams == 0);
  CHECK(pair.a.retained.used_bytes() == 0);
  CHECK(pair.b.retained.used_bytes() == 0);
}

TEST_CASE("the first bytes of a flow reach the far side after one way, not after a round trip") {
  Pair pair({.line = {.delay = 125ms}});
  FlowsOnPair flows(pair);
  pair.connect();
  pair.run_for(1s);
  TimePoint start = pair.now();
  Flow& flow = flows.start(100, 100);
  REQUIRE(pair.run_until([&] { return flow.server_reads.read == 100; }, 2s));
  CHECK(pair.now() - start < 127ms);
  REQUIRE(pair.run_until([&] { return flow.client_reads.read == 100; }, 2s));
  CHECK(pair.now() - start < 254ms);
}

TEST_CASE("a carrier that delivers byte by byte changes nothing") {
  Pair pair({.line = {.bytes_per_second = 1e6, .max_piece = 1}});
  FlowsOnPair flows(pair);
  pair.connect();
  Flow& flow = flows.start(20'000, 20'000);
  REQUIRE(pair.run_until([&] { return flow.complete(); }, 10s));
  CHECK(flow.right());
}

TEST_CASE("a switch to another carrier at any moment neither loses nor repeats bytes") {
  for (int moment = 1; moment <= 40; ++moment) {
    Pair pair(
        {.seed = static_cast<std::uint64_t>(moment), .line = {.bytes_per_second = 2e6, .max_piece = 700}});
    FlowsOnPair flows(pair);
    CarrierId first = pair.connect();
    Flow& flow = flows.start(400'000, 400'000);
    pair.run_for(moment * 7ms);
    // Planned: the new one is there before the old one goes.
    pair.connect({.bytes_per_second = 2e6, .delay = 5ms, .max_piece = 333});
    pair.run_for(moment * 3ms);
    pair.cut(first);
    INFO("switch at step " << moment);
    REQUIRE(pair.run_until([&] { return flow.complete(); }, 20s));
    CHECK(flow.right());
    CHECK_FALSE(pair.a.error);
    CHECK_FALSE(pair.b.error);
    pair.run_for(2s);
    CHECK(pair.b.session.state().live_streams == 0);
  }
}

TEST_CASE("a cut carrier and a new one later lose nothing, at any moment") {
  for (int moment = 0; moment <= 60; ++moment) {
    Pair pair(
        {.seed = static_cast<std::uint64_t>(moment), .line = {.bytes_per_second = 2e6, .max_piece = 1500}});
    FlowsOnPair flows(pair);
    CarrierId first = pair.connect();
    Flow& one = flows.start(150'000, 300'000);
    Flow& two = flows.start(0, 1);
    pair.run_for(moment * 5ms);
    pair.cut(first);
    pair.run_for(700ms);
    pair.connect();
    INFO("cut at step " << moment);
    REQUIRE(pair.run_until([&] { return one.complete() && two.complete(); }, 20s));
    CHECK(flows.all_right());
    pair.run_for(2s);
    CHECK(pair.a.session.state().live_streams == 0);
    CHECK(pair.b.session.state().live_streams == 0);
    CHECK(pair.a.retained.used_bytes() == 0);
  }
}

TEST_CASE("many flows survive a carrier that is cut repeatedly") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Pair pair({.seed = seed});
    FlowsOnPair flows(pair);
    CarrierId carrier = pair.connect();
    std::mt19937_64 random(seed);
    for (int i = 0; i < 100; ++i) flows.start(random() % 50'000, random() % 200'000);
    for (int i = 0; i < 20; ++i) {
      pair.run_for(std::chrono::milliseconds(50 + random() % 300));
      pair.cut(carrier);
      pair.run_for(std::chrono::milliseconds(random() % 300));
      carrier = pair.connect();
    }
    INFO("seed " << seed);
    REQUIRE(pair.run_until([&] { return flows.all_complete(); }, 60s));
    CHECK(flows.all_right());
    pair.run_for(2s);
    CHECK(pair.a.session.state().live_streams == 0);
    CHECK(pair.b.session.state().live_streams == 0);
  }
}

TEST_CASE("without a carrier for a minute every flow is reset") {
  Pair pair;
  FlowsOnPair flows(pair);
  CarrierId carrier = pair.connect();
  Flow& flow = flows.start(1'000'000, 1'000'000);
  pair.run_for(100ms);
  pair.cut(carrier);
  pair.run_for(59s);
  CHECK_FALSE(flow.client_reset);
  pair.run_for(2s);
  CHECK(flow.client_reset);
  CHECK(flow.server_reset);
  CHECK(std::ranges::count(pair.a.events, Event::Kind::expired, &Event::kind) == 1);
}

TEST_CASE("an abort arrives after the bytes that were written before it") {
  Pair pair;
  FlowsOnPair flows(pair);
  pair.connect();
  Flow& flow = flows.start(10, 500'000);
  flow.server_writes.end_after = false;
  REQUIRE(pair.run_until([&] { return flow.server_writes.written == 500'000; }, 5s));
  pair.b.session.find(flow.id)->abort();
  pair.b.session.release(flow.id);
  REQUIRE(pair.run_until([&] { return flow.client_reads.aborted; }, 5s));
  CHECK(flow.client_reads.read == 500'000);
  CHECK(flow.right());
  pair.a.session.release(flow.id);
  pair.run_for(1s);
  CHECK(pair.a.session.state().live_streams == 0);
  CHECK(pair.b.session.state().live_streams == 0);
  CHECK(pair.a.retained.used_bytes() == 0);
}

TEST_CASE("a reset after the end of the sender's direction does not cancel data already sent") {
  Pair pair({.line = {.bytes_per_second = 1e6}});
  FlowsOnPair flows(pair);
  pair.connect();
  Flow& flow = flows.start(5'000'000, 200'000);
  REQUIRE(pair.run_until([&] { return flow.server_writes.written == 200'000; }, 5s));
  pair.b.session.find(flow.id)->abort();  // the server closed its connection, then answered data with a reset
  REQUIRE(pair.run_until([&] { return flow.client_reads.ended; }, 5s));
  CHECK(flow.client_stopped);
  CHECK(flow.client_reads.read == 200'000);
  CHECK(pair.a.session.find(flow.id)->writer().may_write() == 0);
}

TEST_CASE("a reader that stops delays its own flow and no other") {
  Pair pair({.credit_bytes = 8 << 20, .max_streams = 64});
  FlowsOnPair flows(pair);
  pair.connect();
  std::vector<Flow*> stalled;
  for (int i = 0; i < 40; ++i) {
    stalled.push_back(&flows.start(0, 20'000'000));
    stalled.back()->client_reads.paused = true;
  }
  pair.run_for(20s);
  CHECK(pair.a.pool.granted_bytes() + 64 * pair.a.pool.floor_bytes() <= 8u << 20);
  CHECK(pair.a.pool.used_up());
  TimePoint start = pair.now();
  Flow& quick = flows.start(1000, 200'000);
  REQUIRE(pair.run_until([&] { return quick.complete(); }, 20s));
  CHECK(pair.now() - start < 1s);
  for (Flow* flow : stalled) flows.resume_reader(*flow, pair.a);
  REQUIRE(pair.run_until([&] { return stalled.front()->client_reads.read > 1'000'000; }, 60s));
  CHECK_FALSE(pair.a.pool.used_up());
  CHECK(flows.all_right());
}

TEST_CASE("idle flows return their credit when memory is short") {
  Pair pair({.credit_bytes = 8 << 20, .max_streams = 64});
  FlowsOnPair flows(pair);
  pair.connect();
  for (int i = 0; i < 30; ++i) flows.start(1, 1).client_writes.end_after = false;
  for (int i = 0; i < 30; ++i) flows.start(1, 1).server_writes.end_after = false;
  pair.run_for(200ms);
  std::uint64_t free_before = pair.a.pool.free_bytes();
  pair.run_for(10s);
  if (free_before < (6u << 20) / 2) CHECK(pair.a.pool.free_bytes() > free_before);
  Flow& bulk = flows.start(0, 10'000'000);
  REQUIRE(pair.run_until([&] { return bulk.complete(); }, 10s));
}

TEST_CASE("a bulk transfer does not delay a short exchange") {
  Pair pair({.line = {.bytes_per_second = 193'000, .delay = 50ms, .send_buffer = 6000}, .chunk = 2900});
  FlowsOnPair flows(pair);
  pair.connect();
  flows.start(5'000'000, 5'000'000);
  pair.run_for(3s);
  TimePoint start = pair.now();
  Flow& quick = flows.start(200, 1000);
  REQUIRE(pair.run_until([&] { return quick.complete(); }, 5s));
  // Two ways of 50 ms, and in each direction what stood in the send buffer.
  CHECK(pair.now() - start < 250ms);
}

TEST_CASE("a window of 64 KiB limits a flow to one window per round trip") {
  Pair pair({.line = {.delay = 50ms}});
  FlowsOnPair flows(pair);
  pair.connect();
  OpenRequest request = FlowsOnPair::simple_request();
  request.features.window_bytes = 65'535;
  Flow& flow = flows.start(0, 1'000'000, request);
  TimePoint start = pair.now();
  REQUIRE(pair.run_until([&] { return flow.complete(); }, 10s));
  double seconds = std::chrono::duration<double>(pair.now() - start).count();
  CHECK(1'000'000 / seconds < 1.3 * 65'535 / 0.1);
  CHECK(1'000'000 / seconds > 0.6 * 65'535 / 0.1);
}

TEST_CASE("credit grows by itself until the line is full") {
  Pair pair({.line = {.bytes_per_second = 50e6, .delay = 100ms, .send_buffer = 1 << 20},
             .credit_bytes = 400 << 20,
             .retained_bytes = 400 << 20,
             .chunk = 65536});
  FlowsOnPair flows(pair);
  pair.connect();
  pair.run_for(1s);
  pair.a.session.outgoing().set_unsent_limit(4 << 20);
  pair.b.session.outgoing().set_unsent_limit(4 << 20);
  TimePoint start = pair.now();
  Flow& flow = flows.start(200'000'000, 0);
  REQUIRE(pair.run_until([&] { return flow.complete(); }, 30s));
  double seconds = std::chrono::duration<double>(pair.now() - start).count();
  CHECK(seconds < 200e6 / 50e6 * 1.3 + 0.5);
}

TEST_CASE("a frozen path is noticed within a second with waiting flows, and within three when idle") {
  Pair pair;
  FlowsOnPair flows(pair);
  CarrierId carrier = pair.connect();
  pair.run_for(5s);
  auto silent = [&] {
    return std::any_of(pair.a.events.begin(), pair.a.events.end(),
                       [](const Event& e) { return e.kind == Event::Kind::path_silent; });
  };
  SECTION("idle") {
    pair.freeze(carrier, 10s);
    TimePoint start = pair.now();
    REQUIRE(pair.run_until(silent, 10s));
    CHECK(pair.now() - start <= 3050ms);
  }
  SECTION("busy") {
    flows.start(100'000'000, 0);
    pair.run_for(1s);
    pair.freeze(carrier, 10s);
    TimePoint start = pair.now();
    REQUIRE(pair.run_until(silent, 10s));
    CHECK(pair.now() - start <= 1300ms);
  }
  pair.run_for(15s);
  CHECK_FALSE(pair.a.session.state().is_silent);
}

TEST_CASE("a silent path is alive again when the peer is heard, not when another carrier is preferred") {
  Pair pair;
  FlowsOnPair flows(pair);
  const CarrierId first = pair.connect();
  const CarrierId second = pair.connect();
  pair.run_for(1s);
  auto times_alive = [&] { return std::ranges::count(pair.a.events, Event::Kind::path_alive, &Event::kind); };
  pair.freeze(first, 10s);
  pair.freeze(second, 10s);
  REQUIRE(pair.run_until([&] { return pair.a.session.state().is_silent; }, 10s));
  REQUIRE(pair.a.session.preferred() == second);
  SECTION("preferred by its driver") { pair.prefer(pair.a, first); }
  SECTION("the last one left") { pair.cut(second); }
  CHECK(pair.a.session.preferred() == first);
  pair.run_for(1s);
  CHECK(pair.a.session.state().is_silent);
  CHECK(times_alive() == 0);
  pair.run_for(15s);
  CHECK_FALSE(pair.a.session.state().is_silent);
  CHECK(times_alive() == 1);
}

TEST_CASE("a feature change reaches the far side of a running flow") {
  Pair pair;
  FlowsOnPair flows(pair);
  pair.connect();
  Flow& flow = flows.start(10, 10'000'000);
  pair.run_for(300ms);
  config::Features features = pair.a.session.find(flow.id)->request().features;
  features.compression = false;
  pair.a.session.change_features(flow.id, features);
  pair.run_for(200ms);
  CHECK_FALSE(pair.b.session.find(flow.id)->request().features.compression);
  pair.b.session.allow(features);
  pair.run_for(200ms);
  CHECK_FALSE(pair.a.session.incoming().peer_allowed().compression);
}

TEST_CASE("a module's messages keep their position between the bytes") {
  Pair pair;
  pair.connect();
  pair.run_for(100ms);
  Stream& here = pair.a.session.open(FlowsOnPair::simple_request(), pair.now());
  pair.run_for(100ms);
  here.writer().write(as_bytes("before"));
  here.writer().write_message(as_bytes("in between"));
  here.writer().write(as_bytes("after"));
  pair.run_for(100ms);
  Stream& there = *pair.b.session.find(here.id());
  CHECK(there.reader().readable().size() == 11);
  CHECK_FALSE(there.reader().poll_message(pair.now(), 40ms));
  CHECK(there.reader().readable_before_message() == 6);
  there.reader().consume(6, pair.now(), 40ms);
  auto message = there.reader().poll_message(pair.now(), 40ms);
  REQUIRE(message);
  CHECK(as_text(message->bytes()) == "in between");
}

namespace {

// A codec that flips bits, so that a test sees whether blocks went through it; the twin flips them back.
class FlippingCodec : public BlockCodec {
 public:
  std::optional<BlockHeader> encode(std::uint64_t, const ReductionStages&, Bytes plain,
                                    Buffer& out) override {
    for (std::byte b : plain) out.push_back(~b);
    ++encoded;
    return BlockHeader{.codec = 7,
                       .plain_bytes = static_cast<std::uint32_t>(plain.size()),
                       .checksum = BlockChecksum().of(plain),
                       .ring_offset = 0};
  }
  Result<std::optional<Slice>> decode(std::uint64_t, const BlockHeader& header,
                                      Bytes encoded_bytes) override {
    Buffer plain;
    for (std::byte b : encoded_bytes) plain.push_back(~b);
    if (spoil) plain[0] ^= std::byte{1};
    if (BlockChecksum().of(plain) != header.checksum) return LinkError::malformed_record;
    return std::optional(Slice::copy_of(plain));
  }
  Result<void> on_message(Bytes message) override {
    heard = std::string(as_text(message));
    return {};
  }
  bool has_message() const override { return !says.empty(); }
  std::optional<Slice> poll_message() override {
    return says.empty() ? std::nullopt : std::optional(Slice::copy_of(as_bytes(std::exchange(says, ""))));
  }
  int encoded = 0;
  bool spoil = false;
  std::string says, heard;
};

}  // namespace

TEST_CASE("blocks pass through the codec and wrong bytes are never delivered") {
  FlippingCodec codec_a, codec_b;
  Pair pair({}, &codec_a, &codec_b);
  FlowsOnPair flows(pair);
  pair.connect();
  codec_a.says = "held 0 to 100";
  Flow& flow = flows.start(200'000, 200'000);
  REQUIRE(pair.run_until([&] { return flow.complete(); }, 5s));
  CHECK(flow.right());
  CHECK(codec_a.encoded > 0);
  CHECK(codec_b.encoded > 0);
  CHECK(codec_b.heard == "held 0 to 100");

  codec_b.spoil = true;
  Flow& spoilt = flows.start(1000, 0);
  pair.run_for(1s);
  CHECK(spoilt.server_reads.read == 0);
  CHECK(spoilt.server_reset);
  CHECK(spoilt.client_reset);
  codec_b.spoil = false;
  Flow& next = flows.start(1000, 1000);
  CHECK(pair.run_until([&] { return next.complete(); }, 5s));
}

TEST_CASE("a peer that sends more than its credit is an error") {
  Pair pair({.credit_bytes = 256 << 10, .max_streams = 16});
  pair.connect();
  pair.run_for(100ms);
  Buffer record, body, bytes;
  OpenRequest request = FlowsOnPair::simple_request();
  request.forward_credit = pair.b.pool.floor_bytes();
  write_open(request, body);
  write_record_head(RecordType::open, body.size(), record);
  record.insert(record.end(), body.begin(), body.end());
  std::size_t too_much = 40'000;
  write_record_head(RecordType::data, too_much, record);
  record.resize(record.size() + too_much);
  write_frame(StreamFrame{1_stream, 0_offset, record}, bytes);
  auto taken = pair.b.session.receive(CarrierId(1), bytes, pair.now());
  REQUIRE_FALSE(taken);
  CHECK(taken.error() == LinkError::credit_exceeded);
}
