// SPDX-License-Identifier: Apache-2.0
// How streams make blocks of what is written, wait for blocks that cannot be decoded yet, and carry what the
// two codecs tell each other. The codec is a toy that checks how it is called.
#include <catch2/catch.hpp>

#include "simulated_flow.h"
#include "toy_codec.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;

namespace {

struct Toys {
  ToyCodec a, b;
  Toys() = default;
  Toys(const ToyCodec::Options& both) : a(both), b(both) {}
  std::string broken() const { return a.broken + b.broken; }
};

config::Features without_reduction() {
  config::Features features;
  features.compression = features.dedup_memory = features.dedup_disk = false;
  return features;
}

// A stream from a to b that b has answered.
struct OnePair {
  explicit OnePair(PairOptions options = {}, const ToyCodec::Options& toys = {})
      : codecs(toys), pair(options, &codecs.a, &codecs.b) {
    carrier = pair.connect();
    pair.run_for(200ms);
    here = &pair.a.session.open(FlowsOnPair::simple_request(), pair.now());
    pair.run_for(200ms);
    there = pair.b.session.find(here->id());
    REQUIRE(there);
    there->give_answer({});
    pair.run_for(200ms);
  }
  void check_accounts() {
    CHECK(pair.a.retained.used_bytes() == pair.a.session.state().retained_bytes);
    CHECK(pair.b.retained.used_bytes() == pair.b.session.state().retained_bytes);
    CHECK(codecs.broken() == "");
    CHECK_FALSE(pair.a.error);
    CHECK_FALSE(pair.b.error);
  }

  Toys codecs;
  Pair pair;
  CarrierId carrier;
  Stream* here = nullptr;
  Stream* there = nullptr;
};

}  // namespace

TEST_CASE("bytes become a block only when the session is about to send") {
  OnePair one;
  for (int i = 0; i < 20; ++i) one.here->writer().write(Buffer(50));
  CHECK(one.codecs.a.sizes.empty());
  one.check_accounts();
  one.pair.run_for(200ms);
  CHECK(one.codecs.a.sizes == std::vector<std::size_t>{1000});
  CHECK(one.there->reader().readable().size() == 1000);
  CHECK(one.here->blocks().out.blocks == 1);
  CHECK(one.here->blocks().out.plain == 1000);
  CHECK(one.there->blocks().in.plain == 1000);
  one.check_accounts();
}

TEST_CASE(
    "the first block holds 1 ms of the line's rate, a backlog makes blocks larger, a pause small again") {
  OnePair one({.line = {.bytes_per_second = 5e6, .delay = 10ms, .send_buffer = 8 * 1024}, .chunk = 4096});
  one.pair.a.session.outgoing().set_line_rate(5'000'000);
  CHECK(one.codecs.a.line_rate == 5'000'000);
  const std::uint64_t total = 4'000'000;
  std::uint64_t written = 0;
  while (written < total) {
    Buffer bytes(std::min<std::size_t>(one.here->writer().may_write(), total - written));
    one.here->writer().write(bytes);
    written += bytes.size();
    one.pair.run_for(5ms);
    one.there->reader().consume(one.there->reader().readable().size(), one.pair.now(), 20ms);
  }
  one.pair.run_for(1s);
  const auto& sizes = one.codecs.a.sizes;
  REQUIRE(sizes.size() > 5);
  CHECK(sizes[0] == 5000);
  for (std::size_t i = 1; i < sizes.size(); ++i)
    CHECK(sizes[i] <= std::min<std::size_t>(64 * 1024, std::size_t{5000} << std::min<std::size_t>(i, 10)));
  CHECK(*std::max_element(sizes.begin(), sizes.end()) > 40'000);
  one.there->reader().consume(one.there->reader().readable().size(), one.pair.now(), 20ms);
  one.pair.run_for(1s);
  one.here->writer().write(Buffer(20'000));
  const std::size_t before = sizes.size();
  one.pair.run_for(1s);
  CHECK(sizes[before] == 5000);
  one.check_accounts();
}

TEST_CASE("the first block after a pause is sent before the next one is encoded") {
  OnePair one;
  one.pair.a.session.outgoing().set_line_rate(5'000'000);
  const auto sent = [&] {
    Buffer wire;
    one.pair.a.session.outgoing().transmit(one.carrier, 100'000, 16'384, wire, one.pair.now());
    return wire.size();
  };
  one.here->writer().write(Buffer(40'000));
  sent();
  CHECK(one.codecs.a.sizes == std::vector<std::size_t>{5000});
  CHECK(one.pair.a.session.outgoing().wants_to_transmit(one.carrier, one.pair.now()));
  sent();
  CHECK(one.codecs.a.sizes == std::vector<std::size_t>{5000, 10'000, 20'000, 5000});
  CHECK(sent() == 0);
  one.check_accounts();
}

TEST_CASE("messages of several streams are sent together, each in its own block") {
  OnePair one;
  std::vector<Stream*> streams{one.here};
  for (int i = 0; i < 3; ++i) {
    streams.push_back(&one.pair.a.session.open(FlowsOnPair::simple_request(), one.pair.now()));
    one.pair.run_for(200ms);
  }
  for (Stream* stream : streams) stream->writer().write(Buffer(100));
  Buffer wire;
  one.pair.a.session.outgoing().transmit(one.carrier, 100'000, 16'384, wire, one.pair.now());
  CHECK(one.codecs.a.sizes == std::vector<std::size_t>{100, 100, 100, 100});
  CHECK_FALSE(one.pair.a.session.outgoing().wants_to_transmit(one.carrier, one.pair.now()));
}

TEST_CASE("bytes that wait to be encoded count against every limit") {
  OnePair one;
  one.pair.cut(one.carrier);
  one.pair.a.session.outgoing().set_unsent_limit(100'000);
  std::size_t written = 0;
  while (std::size_t room = one.here->writer().may_write()) {
    written += std::min<std::size_t>(room, 7000);
    one.here->writer().write(Buffer(std::min<std::size_t>(room, 7000)));
    one.check_accounts();
  }
  CHECK(one.codecs.a.sizes.empty());
  // A whole block may wait beside what the limit allows.
  CHECK(written <= 100'000 + kMaxBlockPlainBytes);
  CHECK(written > 90'000);
  CHECK(one.pair.a.retained.used_bytes() >= written);
  SECTION("until they are sent") {
    one.pair.connect();
    one.pair.run_for(1s);
    CHECK(one.there->reader().readable().size() == written);
    CHECK(one.here->writer().may_write() > 0);
  }
  SECTION("until the stream is reset") { one.here->reset(ResetCode::aborted); }
  SECTION("until the peer resets it") {
    one.there->reset(ResetCode::aborted);
    one.pair.connect();
    one.pair.run_for(1s);
    CHECK(one.here->writer().output().unsent_bytes() == 0);
  }
  SECTION("until the session is over") {
    one.pair.a.session.abandon(one.pair.now());
    one.pair.a.session.end_streams(1);
  }
  one.check_accounts();
}

TEST_CASE("messages, the end and an abort follow the bytes that were written before them") {
  OnePair one;
  one.here->writer().write(as_bytes("before"));
  one.here->writer().write_message(as_bytes("in between"));
  one.here->writer().write(as_bytes("after"));
  SECTION("end") { one.here->writer().end(); }
  SECTION("abort") { one.here->abort(); }
  one.check_accounts();
  one.pair.run_for(200ms);
  CHECK(one.there->reader().readable().size() == 11);
  CHECK(one.there->reader().readable_before_message() == 6);
  one.there->reader().consume(6, one.pair.now(), 40ms);
  auto message = one.there->reader().poll_message(one.pair.now(), 40ms);
  REQUIRE(message);
  CHECK(as_text(message->bytes()) == "in between");
  CHECK(one.there->reader().state() != ReadState::open);
  one.check_accounts();
}

TEST_CASE("bytes read in place become blocks without a copy, or plain records if a block gains nothing") {
  OnePair one({}, {.passes = 1});
  std::byte* memory = nullptr;
  constexpr std::size_t kBytes = 50'000;
  Slice wire = Slice::unfilled(StreamWriter::kRecordRoom + kBytes, memory);
  fill_expected(5, 0, MutableBytes(memory + StreamWriter::kRecordRoom, kBytes));
  one.here->writer().write_in_place(wire, memory, kBytes);
  one.check_accounts();
  one.pair.run_for(1s);
  Reader reader{.seed = 5};
  reader.pump(*one.there, one.pair.now(), 40ms);
  CHECK(reader.read == kBytes);
  CHECK_FALSE(reader.wrong);
  CHECK(one.here->blocks().out.blocks == 0);
  one.pair.run_for(1s);
  one.check_accounts();
  CHECK(one.pair.a.session.state().retained_bytes < 200);
}

TEST_CASE("features that change during a flow apply from the next block") {
  OnePair one;
  one.here->writer().write(as_bytes("as a block"));
  one.pair.a.session.change_features(one.here->id(), without_reduction());
  one.here->writer().write(as_bytes(", and no more"));
  one.here->writer().end();
  one.pair.run_for(200ms);
  // All of it was still to be encoded.
  CHECK(one.codecs.a.sizes.empty());
  CHECK(one.there->reader().readable().size() == 23);
  CHECK(one.there->reader().state() == ReadState::ended);
  one.there->writer().write(as_bytes("x"));
  one.pair.run_for(200ms);
  CHECK(one.codecs.b.sizes.empty());
  config::Features features = without_reduction();
  features.dedup_memory = true;
  one.pair.a.session.change_features(one.here->id(), features);
  one.pair.run_for(200ms);
  one.there->writer().write(as_bytes("y"));
  one.pair.run_for(200ms);
  CHECK(one.codecs.b.sizes.size() == 1);
  CHECK(one.codecs.b.last_stages.dedup_memory);
  CHECK_FALSE(one.codecs.b.last_stages.compression);
  CHECK(one.here->reader().readable().size() == 2);
  one.check_accounts();
}

TEST_CASE("a block that cannot be decoded yet delays only its own stream") {
  OnePair one;
  Stream& other = one.pair.a.session.open(FlowsOnPair::simple_request(), one.pair.now());
  one.pair.run_for(200ms);
  one.codecs.b.hold_back = true;
  one.codecs.a.silent = true;
  one.here->writer().write(as_bytes("first"));
  one.pair.run_for(100ms);
  one.codecs.b.hold_back = false;
  one.here->writer().write(as_bytes("second"));
  one.pair.run_for(100ms);
  one.here->writer().write_message(as_bytes("third"));
  one.here->writer().end();
  other.writer().write(as_bytes("past it"));
  one.pair.run_for(400ms);  // what is little is acknowledged within a quarter of a second
  CHECK(one.there->reader().readable().empty());
  CHECK_FALSE(one.there->reader().poll_message(one.pair.now(), 40ms));
  CHECK(one.there->reader().state() == ReadState::open);
  CHECK(one.pair.b.session.find(other.id())->reader().readable().size() == 7);
  // What has come need not be kept by the other side.
  CHECK(one.here->writer().output().sending().all_acknowledged());
  one.check_accounts();
  SECTION("and goes on when it can") {
    one.codecs.a.answer();
    one.pair.run_for(200ms);
    CHECK(one.there->reader().readable().size() == 11);
    one.there->reader().consume(11, one.pair.now(), 40ms);
    CHECK(one.there->reader().poll_message(one.pair.now(), 40ms));
    CHECK(one.there->reader().state() == ReadState::ended);
  }
  SECTION("also if the other side has released it") {
    one.there->writer().end();
    one.pair.run_for(200ms);
    one.pair.a.session.release(one.here->id());
    one.pair.run_for(200ms);
    CHECK_FALSE(one.pair.a.session.find(1_stream));
    one.codecs.a.answer();
    one.pair.run_for(200ms);
    CHECK(one.there->reader().readable().size() == 11);
    CHECK(one.there->reader().state() == ReadState::ended);
  }
  SECTION("or is reset") {
    one.here->reset(ResetCode::aborted);
    one.pair.run_for(200ms);
    CHECK(one.there->reader().state() == ReadState::reset);
    CHECK(one.codecs.b.forgotten().contains(1));
    one.codecs.a.answer();
    one.pair.run_for(200ms);
    CHECK(one.there->reader().readable().empty());
  }
  SECTION("or is given up here") {
    one.there->abort();
    one.codecs.a.answer();
    one.pair.run_for(200ms);
    CHECK(one.there->reader().readable().empty());
  }
  SECTION("or is reset because it never can") {
    one.codecs.a.silent = false;
    one.codecs.a.say("gone 1");
    one.pair.run_for(200ms);
    CHECK(one.there->reader().state() == ReadState::reset);
    CHECK(one.there->reset_code() == ResetCode::undecodable);
    CHECK(one.here->reader().state() == ReadState::reset);
  }
  one.check_accounts();
}

TEST_CASE("the memory behind a waiting block is bounded") {
  OnePair one({.credit_bytes = 1 << 20, .max_streams = 16});
  one.codecs.b.hold_back = true;
  one.codecs.a.silent = true;
  std::uint64_t written = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::size_t room = std::min<std::size_t>(one.here->writer().may_write(), 5000);
    one.here->writer().write(Buffer(room));
    written += room;
    one.pair.run_for(2ms);
  }
  // Credit ends it: the reader takes nothing.
  CHECK(written < 1 << 20);
  one.check_accounts();
  one.codecs.b.hold_back = false;
  one.codecs.a.answer();
  REQUIRE(one.pair.run_until([&] { return one.there->reader().readable().size() == written; }, 2s));
  one.check_accounts();
}

TEST_CASE("the codec is informed when the peer no longer reads the stream") {
  OnePair one;
  one.here->writer().write(Buffer(5000));
  one.pair.run_for(200ms);
  CHECK(one.codecs.a.stopped.empty());
  SECTION("though the other direction has ended") {
    one.there->writer().end();
    one.there->abort();
  }
  SECTION("nor sends anything more") { one.there->abort(); }
  one.pair.run_for(200ms);
  CHECK(one.codecs.a.stopped == std::set<std::uint64_t>{one.here->id().number()});
  CHECK(one.codecs.b.stopped.empty());
  one.check_accounts();
}

TEST_CASE("a violation of the codec's protocol ends the session") {
  OnePair one;
  one.codecs.a.say("breach");
  one.pair.run_for(200ms);
  CHECK(one.pair.b.error == LinkError::malformed_record);
  CHECK(one.there->reader().state() == ReadState::reset);
  CHECK(one.codecs.broken() == "");
}

TEST_CASE("held blocks are reported with acknowledgements, not one at a time") {
  OnePair one({.line = {.delay = 1ms}});
  const TimePoint start = one.pair.now();
  for (int i = 0; i < 300; ++i) {
    one.here->writer().write(Buffer(100));
    REQUIRE(one.pair.run_until([&] { return one.there->reader().readable().size() == 100; }, 1s));
    one.there->reader().consume(100, one.pair.now(), 2ms);
    one.there->writer().write(Buffer(100));
    REQUIRE(one.pair.run_until([&] { return one.here->reader().readable().size() == 100; }, 1s));
    one.here->reader().consume(100, one.pair.now(), 2ms);
  }
  const auto lasted = one.pair.now() - start;
  REQUIRE(lasted > 500ms);
  one.pair.run_for(500ms);
  CHECK(one.codecs.a.held_by_twin == 300);
  CHECK(one.codecs.b.held_by_twin == 300);
  CHECK(one.codecs.a.heard["held"] <= lasted / 250ms + 2);
  CHECK(one.codecs.a.heard["held"] >= lasted / 250ms);
  one.check_accounts();
}

TEST_CASE("a long transfer reports its blocks as held while it runs") {
  OnePair one(
      {.line = {.bytes_per_second = 20e6, .delay = 50ms, .send_buffer = 512 * 1024}, .chunk = 64 * 1024});
  one.pair.a.session.outgoing().set_line_rate(20'000'000);
  FlowsOnPair flows(one.pair);
  Flow& flow = flows.start(20'000'000, 0);
  one.pair.run_for(500ms);
  const std::size_t made = one.codecs.a.sizes.size();
  CHECK(made > 20);
  // All but those of about a round trip and a half.
  CHECK(one.codecs.a.held_by_twin > 10);
  REQUIRE(one.pair.run_until([&] { return flow.complete(); }, 10s));
  CHECK(flow.right());
}

TEST_CASE("flows arrive complete over any packets while their blocks wait for each other") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    INFO("seed " << seed);
    LineOptions packets{.bytes_per_second = 5e6, .delay = 15ms, .packet = 1200, .loss = 0.2};
    LineOptions whole{.bytes_per_second = 5e6, .delay = 15ms};
    Toys codecs({.waits = 0.2, .passes = 0.1, .seed = seed});
    Pair pair({.seed = seed, .line = whole, .max_streams = 512}, &codecs.a, &codecs.b);
    FlowsOnPair flows(pair);
    CarrierId carrier = pair.connect(packets);
    std::mt19937_64 random(seed);
    for (int i = 0; i < 60; ++i) flows.start(random() % 100'000, random() % 100'000);
    // Cut again and again, at every point of the transfers.
    for (int cut = 0; cut < 40; ++cut) {
      pair.run_for(std::chrono::microseconds(random() % 60'000));
      pair.cut(carrier);
      if (random() % 4 == 0) pair.run_for(std::chrono::milliseconds(random() % 100));
      carrier = pair.connect(random() % 2 ? packets : whole);
    }
    REQUIRE(pair.run_until([&] { return flows.all_complete(); }, 120s));
    CHECK(flows.all_right());
    CHECK(codecs.broken() == "");
    CHECK(codecs.a.heard["need"] > 0);
    pair.run_for(4s);
    CHECK(pair.a.session.state().live_streams == 0);
    CHECK(pair.b.session.state().live_streams == 0);
    CHECK(pair.a.retained.used_bytes() == 0);
    CHECK(pair.b.retained.used_bytes() == 0);
    CHECK(codecs.a.waiting() == 0);
  }
}

TEST_CASE("a side without a codec refuses blocks, and two sides without one send plain bytes") {
  ToyCodec only_here;
  Pair pair({}, &only_here, nullptr);
  FlowsOnPair flows(pair);
  pair.connect();
  Flow& flow = flows.start(1000, 0);
  pair.run_for(1s);
  CHECK(flow.server_reset);
  OpenRequest request = FlowsOnPair::simple_request();
  request.features = without_reduction();
  Flow& plain = flows.start(1000, 1000, request);
  CHECK(pair.run_until([&] { return plain.complete(); }, 5s));
  CHECK(plain.right());
}
