// SPDX-License-Identifier: Apache-2.0
#include "codecs/reduction/reduction.h"

#include <malloc.h>

#include <fstream>

#include "codecs/reduction/twins.h"

using namespace longhaul;
using namespace longhaul::reduction;

namespace {

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

}  // namespace

TEST_CASE("the output equals the input for any splits, delays and order of streams") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    INFO("seed " << seed);
    Twins twins(seed);
    Traffic traffic(seed);
    std::uint64_t streams = 1 + seed * 3 % 17, next = 100;
    std::size_t longest = seed % 3 == 0 ? 300 : seed % 3 == 1 ? 9'000 : kBlock;
    if (seed % 2) twins.meet();
    for (int i = 0; i < 500; ++i) {
      std::uint64_t stream = 1 + twins.random() % streams;
      ReductionStages stages{.dedup_memory = twins.random() % 8 != 0,
                             .dedup_disk = false,
                             .compression = twins.random() % 8 != 0};
      twins.write(static_cast<int>(twins.random() % 2), twins.over(stream) ? ++next : stream,
                  traffic.some(1 + twins.random() % longest), stages);
      if (seed % 4 == 0 && twins.random() % 40 == 0) twins.reset(stream);
      for (std::uint64_t steps = twins.random() % 5; steps > 0; --steps) twins.step();
    }
    twins.settle();
    for (int i : {0, 1}) {
      Counters counters = twins.side(i).counters();
      CHECK(counters.encoder.mismatches == 0);
      CHECK(counters.encoder.gone == 0);
      CHECK(counters.encoder.horizon_stalls == 0);
      if (seed % 4) CHECK(counters.encoder.unanswered_bytes == 0);
      if (longest > 1000) CHECK(twins.wire_bytes(i) < twins.plain_bytes(i));
    }
    CHECK(twins.failed_streams() == 0);
  }
}

TEST_CASE("a repeat costs next to nothing, also on another stream and at another offset") {
  Twins twins(1);
  twins.meet();
  Traffic traffic(2);
  std::string text = traffic.text(2'000'000) + traffic.noise(1'000'000);
  transfer(twins, 1, text);
  std::uint64_t first = twins.wire_bytes(0);
  CHECK(first < text.size());
  transfer(twins, 3, text);
  std::uint64_t second = twins.wire_bytes(0) - first;
  CHECK(second < text.size() / 200);
  transfer(twins, 5, "x" + text);
  CHECK(twins.wire_bytes(0) - first - second < text.size() / 200);
  EncoderCounters counters = twins.side(0).counters().encoder;
  CHECK(counters.bytes.copied_bytes > 2 * text.size() * 98 / 100);
  CHECK(counters.hits[kHitLengths - 1] > 0);
}

TEST_CASE("repeated content is found each time, however much of the ring it occupies") {
  for (std::size_t mebibytes : {2, 4, 5, 6, 7, 8, 9, 11}) {
    INFO(mebibytes << " MiB of 16");
    Twins twins(1);
    twins.meet();
    std::string noise = Traffic(mebibytes).noise(mebibytes << 20);
    for (std::uint64_t pass = 0; pass < 6; ++pass) {
      std::uint64_t before = twins.wire_bytes(0);
      transfer(twins, 1 + 2 * pass, noise);
      INFO("pass " << pass);
      if (pass) CHECK(twins.wire_bytes(0) - before < noise.size() / 50);
    }
  }
}

TEST_CASE("a stream refers to bytes of another stream only after the peer has confirmed them") {
  Twins twins(1);
  twins.meet();
  Traffic traffic(3);
  std::string noise = traffic.noise(kBlock);
  twins.hold(0, 1);
  twins.write(0, 1, noise);
  twins.write(0, 3, noise);
  twins.settle();  // stream 3 arrives alone
  CHECK(twins.delivered_bytes(0) == kBlock);
  CHECK(twins.side(0).last_encoded().copied_bytes == 0);
  // The same stream goes in order, so it may.
  twins.write(0, 1, noise);
  CHECK(twins.side(0).last_encoded().copied_bytes == kBlock);
  twins.settle();
  twins.write(0, 5, noise);
  CHECK(twins.side(0).last_encoded().copied_bytes == kBlock);
  twins.release(0, 1);
  twins.settle();
}

TEST_CASE("the ring wraps many times under many streams") {
  Twins twins(7);
  twins.meet();
  Traffic traffic(7);
  for (int i = 0; i < 900; ++i) {
    twins.write(0, 1 + 2 * (twins.random() % 20), traffic.some(1 + twins.random() % kBlock));
    for (int steps = 0; steps < 3; ++steps) twins.step();
  }
  twins.settle();
  EncoderCounters counters = twins.side(0).counters().encoder;
  CHECK(counters.bytes.plain_bytes > (20u << 20));
  CHECK(counters.ring_filled_bytes == (16u << 20));
  CHECK(counters.mismatches + counters.needs == 0);
  CHECK(counters.horizon_stalls == 0);
  CHECK(twins.side(1).counters().decoder.ring_filled_bytes == (16u << 20));
}

TEST_CASE("a stream that does not arrive stops the history at the horizon, but never other streams") {
  Twins twins(5);
  twins.meet();
  Traffic traffic(5);
  twins.hold(0, 1);
  twins.write(0, 1, traffic.text(10'000));
  // The horizon is a quarter of the ring; this many more do not make anything be given up.
  for (int i = 0; i < 100; ++i) {
    twins.write(0, 3, traffic.some(kBlock));
    twins.settle();
  }
  EncoderCounters counters = twins.side(0).counters().encoder;
  CHECK(counters.horizon_stalls > 30);
  CHECK(counters.horizon_stalls < 40);
  CHECK(twins.delivered_bytes(0) == 100 * kBlock);
  twins.release(0, 1);
  twins.settle();
  CHECK(twins.side(0).counters().encoder.unanswered_bytes == 0);
  twins.write(0, 3, traffic.some(kBlock));
  CHECK((twins.last->codec & kInRing) != 0);
  CHECK(twins.side(1).counters().decoder.needs == 0);
}

TEST_CASE("a stream whose bytes the receiver discards is given up") {
  Twins twins(6);
  twins.meet();
  Traffic traffic(6);
  twins.discard(0, 1);
  for (int i = 0; i < 10; ++i) twins.write(0, 1, traffic.text(10'000));
  for (int i = 0; i < 400; ++i) {
    twins.write(0, 3, traffic.some(kBlock));
    twins.settle();
  }
  CHECK((twins.last->codec & kInRing) != 0);
  EncoderCounters counters = twins.side(0).counters().encoder;
  CHECK(counters.horizon_stalls > 0);
  CHECK(counters.horizon_stalls < 100);
  CHECK(counters.mismatches == 0);
}

TEST_CASE("a stream that is known to have no reader delays nothing") {
  Twins twins(6);
  twins.meet();
  Traffic traffic(6);
  twins.discard(0, 1);
  for (int i = 0; i < 10; ++i) twins.write(0, 1, traffic.text(10'000));
  twins.write(1, 1, traffic.text(10'000));
  twins.settle();
  CHECK(twins.side(0).counters().encoder.unanswered_bytes > 0);
  twins.side(0).stop_encoding(1);
  CHECK(twins.side(0).counters().encoder.unanswered_bytes == 0);
  // The other direction goes on.
  twins.write(1, 1, traffic.text(10'000));
  twins.settle();
  CHECK(twins.delivered_bytes(1) == 20'000);
  for (int i = 0; i < 300; ++i) {
    twins.write(0, 3, traffic.some(kBlock));
    twins.settle();
  }
  CHECK(twins.side(0).counters().encoder.horizon_stalls == 0);
}

TEST_CASE("streams that end early leave no unanswered blocks") {
  Twins twins(8);
  twins.meet();
  Traffic traffic(8);
  for (std::uint64_t stream = 1; stream < 400; stream += 2) {
    for (int i = 0; i < 5; ++i) {
      twins.write(0, stream, traffic.some(1 + twins.random() % 20'000));
      if (twins.random() % 2) twins.step();
    }
    twins.reset(stream);
  }
  twins.settle();
  CHECK(twins.side(0).counters().encoder.unanswered_bytes == 0);
  CHECK(twins.side(0).counters().encoder.mismatches == 0);
}

TEST_CASE("the next stream refers to a short stream's bytes although that ended before the answer") {
  Twins twins(9);
  twins.meet();
  Traffic traffic(9);
  std::string noise = traffic.noise(8000);
  twins.hold_messages(1, true);
  twins.write(0, 1, noise);
  twins.settle();
  twins.close(1);
  twins.hold_messages(1, false);
  twins.settle();
  twins.write(0, 3, noise);
  CHECK(twins.side(0).last_encoded().copied_bytes > 7800);
  twins.settle();
}

TEST_CASE("incompressible bytes cost little more, and are detected") {
  Twins twins(13);
  twins.meet();
  Traffic traffic(13);
  for (int i = 0; i < 100; ++i) twins.write(0, 1, traffic.noise(kBlock));
  twins.settle();
  CHECK(twins.wire_bytes(0) < 100 * kBlock * 1003 / 1000);
  CHECK(twins.side(0).counters().encoder.incompressible_blocks > 90);
  // A stream of small ones is not put into blocks for ever.
  for (int i = 0; i < 200; ++i) twins.write(0, 1, traffic.noise(100));
  CHECK(twins.side(0).counters().encoder.passed_bytes > 15'000);
  // And what comes behind them still shrinks.
  twins.write(0, 1, traffic.text(kBlock));
  CHECK(twins.side(0).last_encoded().encoded_bytes < kBlock / 2);
  twins.settle();
}

TEST_CASE("similar small messages shrink, also on new streams") {
  Twins twins(14);
  twins.meet();
  std::uint64_t plain = 0, encoded = 0;
  for (int i = 0; i < 50; ++i) {
    std::string request = "GET /pages/" + std::to_string(i * 7919) +
                          ".html HTTP/1.1\r\nHost: intranet.example\r\nUser-Agent: Something/1.0\r\n"
                          "Accept: text/html, application/xhtml+xml\r\nCookie: session=9b1deb4d3b7d\r\n\r\n";
    twins.write(0, static_cast<std::uint64_t>(1 + 2 * i), request);
    twins.settle();
    plain += request.size();
    encoded += twins.side(0).last_encoded().encoded_bytes;
  }
  CHECK(encoded < plain / 4);
}

TEST_CASE("a flow without dedup_memory neither uses other flows' data nor gives them its own") {
  const bool compression = GENERATE(false, true);
  const ReductionStages alone{.dedup_memory = false, .compression = compression};
  Twins twins(17);
  twins.meet();
  Traffic traffic(17);
  const std::string secret = traffic.noise(20'000), shared = traffic.noise(20'000);
  auto cost = [&](std::uint64_t stream, const std::string& bytes, const ReductionStages& stages) {
    const std::uint64_t before = twins.wire_bytes(0);
    twins.write(0, stream, bytes, stages);
    twins.settle();
    return twins.wire_bytes(0) - before;
  };
  CHECK(cost(1, secret, alone) > secret.size());
  CHECK(cost(3, shared, {}) > shared.size());
  // Other flows, with what was just sent, and one that was sent before it began.
  CHECK(cost(5, secret, {}) > secret.size());
  CHECK(cost(7, shared, alone) > shared.size());
  CHECK(cost(9, shared, {}) < shared.size() / 10);
  // Its own bytes make it shorter where it is compressed.
  const std::string text = traffic.text(20'000);
  const std::uint64_t first = cost(11, text, alone);
  if (compression) CHECK(cost(11, text, alone) < first / 2);
}

TEST_CASE("each stage can be switched off") {
  Traffic traffic(15);
  std::string text = traffic.text(kBlock), noise = traffic.noise(kBlock);
  Twins twins(15);
  twins.meet();
  for (int i = 0; i < 2; ++i) twins.write(0, 1, noise, {.dedup_memory = false, .compression = true});
  CHECK(twins.side(0).counters().encoder.bytes.copied_bytes == 0);
  for (int i = 0; i < 2; ++i) twins.write(0, 3, text, {.dedup_memory = true, .compression = false});
  CHECK(twins.side(0).last_encoded().copied_bytes == kBlock);
  CHECK((twins.last->codec & kZstd) == 0);
  twins.settle();

  Twins without(16, {.ring_bytes = 0, .peer_ring_bytes = 0});
  without.settle();
  for (int i = 0; i < 3; ++i) without.write(0, 1, text);
  CHECK(without.last->codec == kZstd);
  without.write(0, 1, noise);
  CHECK_FALSE(without.last.has_value());
  without.settle();

  // The twin's limit counts.
  Reduction asking(ring_of(64)), taking({.ring_bytes = 0, .peer_ring_bytes = (20u << 20) + 5});
  REQUIRE(taking.on_message(asking.poll_message()->bytes()));
  REQUIRE(asking.on_message(taking.poll_message()->bytes()));
  CHECK(asking.counters().encoder.ring_bytes == 20u << 20);
  CHECK(taking.counters().decoder.ring_bytes == 20u << 20);
}

TEST_CASE("idle encoders and decoders cost next to nothing") {
  std::vector<std::unique_ptr<Reduction>> idle;
  std::size_t before = resident_bytes();
  for (int i = 0; i < 200; ++i) {
    idle.push_back(std::make_unique<Reduction>(ring_of(1024)));
    idle.push_back(std::make_unique<Reduction>(ring_of(1024)));
    Reduction &a = *idle[idle.size() - 2], &b = *idle.back();
    for (int round = 0; round < 2; ++round) {
      while (auto message = a.poll_message()) REQUIRE(b.on_message(message->bytes()));
      while (auto message = b.poll_message()) REQUIRE(a.on_message(message->bytes()));
    }
    REQUIRE(a.counters().encoder.ring_bytes == 1u << 30);
  }
  CHECK((resident_bytes() - before) / idle.size() < 32 * 1024);
}
