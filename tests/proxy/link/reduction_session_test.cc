// SPDX-License-Identifier: Apache-2.0
// Two sessions with real dictionaries between them: flows that share content, over carriers that lose and
// reorder packets and are cut at any moment. Every byte is right, repeats cost little, nothing is left
// behind.
#include <catch2/catch.hpp>

#include "codecs/reduction/reduction.h"
#include "simulated_flow.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;

namespace {

reduction::Options small(std::uint64_t epoch) {
  return {.ring_bytes = 16 << 20, .peer_ring_bytes = 16 << 20, .epoch = epoch};
}

struct Twins {
  reduction::Reduction a{small(1)}, b{small(2)};
};

// Writes `content`, of which each is the same for every flow, from the client to the server.
Flow& start(FlowsOnPair& flows, Pair& pair, std::uint64_t content, std::uint64_t bytes) {
  Flow& flow = flows.start_open();
  flow.client_writes = {.seed = content, .total = bytes};
  flow.server_reads.seed = content;
  flow.server_writes.end_after = true;
  flow.client_writes.pump(*pair.a.session.find(flow.id));
  return flow;
}

void check_nothing_is_left(Pair& pair) {
  pair.run_for(5s);
  for (Endpoint* side : {&pair.a, &pair.b}) {
    CHECK_FALSE(side->error);
    CHECK(side->session.state().live_streams == 0);
    CHECK(side->retained.used_bytes() == 0);
  }
}

}  // namespace

TEST_CASE("data that another flow has sent costs next to nothing") {
  Twins codecs;
  Pair pair({.line = {.bytes_per_second = 6.25e6, .delay = 20ms}}, &codecs.a, &codecs.b);
  FlowsOnPair flows(pair);
  const CarrierId carrier = pair.connect();
  std::uint64_t first = 0;
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t before = pair.carried(carrier);
    Flow& flow = start(flows, pair, 7, 3'000'000);
    REQUIRE(pair.run_until([&] { return flow.complete(); }, 10s));
    pair.run_for(100ms);  // until the last block is answered: only then it is referred to
    CHECK(flow.right());
    const std::uint64_t cost = pair.carried(carrier) - before;
    if (i == 0) first = cost;
    CHECK((i == 0 ? cost > 2'900'000 : cost < first / 100));
  }
  CHECK(codecs.a.counters().encoder.bytes.copied_bytes > 5'900'000);
  check_nothing_is_left(pair);
}

TEST_CASE("repeated data is sent in whole blocks and full packets, however slow the line") {
  Twins codecs;
  Pair pair({.line = {.bytes_per_second = 193e3, .delay = 50ms, .send_buffer = 4096}, .chunk = 2800},
            &codecs.a, &codecs.b);
  FlowsOnPair flows(pair);
  const CarrierId carrier = pair.connect();
  pair.a.session.outgoing().set_line_rate(193'000);
  pair.a.session.outgoing().set_unsent_limit(64 * 1024);
  std::uint64_t blocks = 0, carried = 0;
  for (int i = 0; i < 2; ++i) {
    blocks = codecs.a.counters().encoder.blocks;
    carried = pair.carried(carrier);
    Flow& flow = start(flows, pair, 7, 3'000'000);
    REQUIRE(pair.run_until([&] { return flow.complete(); }, 60s));
    pair.run_for(1s);
    CHECK(flow.right());
  }
  CHECK(codecs.a.counters().encoder.blocks - blocks < 3'000'000 / 65'536 * 3 / 2);
  CHECK(pair.carried(carrier) - carried < 10'000);
  check_nothing_is_left(pair);
}

TEST_CASE("flows with shared content arrive complete despite loss, reordering and cuts") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    INFO("seed " << seed);
    Twins codecs;
    LineOptions packets{.bytes_per_second = 10e6, .delay = 15ms, .packet = 1200, .loss = 0.1};
    LineOptions whole{.bytes_per_second = 10e6, .delay = 15ms};
    Pair pair({.seed = seed, .line = whole, .max_streams = 512}, &codecs.a, &codecs.b);
    FlowsOnPair flows(pair);
    CarrierId carrier = pair.connect(packets);
    std::mt19937_64 random(seed);
    std::uint64_t plain = 0;
    for (int step = 0; step < 60; ++step) {
      for (int i = 0; i < 2; ++i) {
        const std::uint64_t bytes = 1 + random() % 200'000;
        plain += bytes;
        start(flows, pair, random() % 5, bytes);
      }
      pair.run_for(std::chrono::microseconds(random() % 60'000));
      if (step % 2) {
        pair.cut(carrier);
        if (random() % 4 == 0) pair.run_for(std::chrono::milliseconds(random() % 100));
        carrier = pair.connect(random() % 3 ? packets : whole);
      }
      if (step % 20 == 15) (random() % 2 ? codecs.a : codecs.b).clear();
    }
    REQUIRE(pair.run_until([&] { return flows.all_complete(); }, 120s));
    CHECK(flows.all_right());
    check_nothing_is_left(pair);
    const auto sent = codecs.a.counters().encoder;
    const auto received = codecs.b.counters().decoder;
    CHECK(received.failed == 0);
    CHECK(received.mismatches == 0);
    CHECK(sent.bytes.plain_bytes + sent.passed_bytes == plain);
    // Less than it could be: only what the other side was heard to hold is referred to, and twice all is
    // cleared.
    CHECK(sent.bytes.encoded_bytes < plain * 3 / 4);
    CHECK(sent.unanswered_bytes == 0);
  }
}
