// SPDX-License-Identifier: Apache-2.0
// Hundreds to thousands of flows of one session, and two sessions that share a memory: all arrive, within the
// caps.
#include <catch2/catch.hpp>

#include "simulated_flow.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;

TEST_CASE("flows arrive complete over packets with a third lost, switching to bytes and back") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    INFO("seed " << seed);
    LineOptions packets{.bytes_per_second = 5e6, .delay = 15ms, .packet = 1200, .loss = 0.33};
    Pair pair({.seed = seed, .line = {.bytes_per_second = 5e6, .delay = 15ms}, .max_streams = 512});
    FlowsOnPair flows(pair);
    CarrierId lossy = pair.connect(packets);
    std::mt19937_64 random(seed);
    for (int i = 0; i < 200; ++i) flows.start(random() % 50'000, random() % 50'000);
    pair.run_for(400ms);
    CarrierId bytes = pair.connect();
    pair.run_for(200ms);
    pair.prefer(pair.a, lossy);
    pair.run_for(200ms);
    pair.prefer(pair.b, lossy);
    pair.run_for(200ms);
    if (seed % 2) pair.cut(seed % 4 == 1 ? lossy : bytes);
    REQUIRE(pair.run_until([&] { return flows.all_complete(); }, 60s));
    CHECK(flows.all_right());
    pair.run_for(4s);
    check_all_forgotten(pair);
  }
}

TEST_CASE("a thousand flows at once arrive complete") {
  Pair pair({.line = {.bytes_per_second = 20e6, .send_buffer = 256 * 1024}, .max_streams = 2048});
  FlowsOnPair flows(pair);
  CarrierId carrier = pair.connect();
  std::mt19937_64 random(3);
  for (int i = 0; i < 1000; ++i) flows.start(random() % 5000, random() % 20'000);
  pair.run_for(300ms);
  pair.cut(carrier);
  pair.connect();
  REQUIRE(pair.run_until([&] { return flows.all_complete(); }, 60s));
  CHECK(flows.all_right());
  pair.run_for(2s);
  check_all_forgotten(pair);
}

TEST_CASE("ten thousand flows that open within one round trip stay under the cap") {
  PairOptions options{.line = {.bytes_per_second = 100e6, .delay = 100ms, .send_buffer = 8 << 20},
                      .credit_bytes = 64 << 20,
                      .max_streams = 16'384};
  Pair pair(options);
  FlowsOnPair flows(pair);
  pair.connect();
  pair.run_for(1s);
  for (int i = 0; i < 10'000; ++i) flows.start(100, 2000);
  for (int i = 0; i < 300; ++i) {
    pair.run_for(2ms);
    check_memory(pair.a, options.credit_bytes);
    check_memory(pair.b, options.credit_bytes);
  }
  REQUIRE(pair.run_until([&] { return flows.all_complete(); }, 30s));
  CHECK(flows.all_right());
  CHECK_FALSE(pair.a.error);
  CHECK_FALSE(pair.b.error);
  pair.run_for(2s);
  check_all_forgotten(pair);
}

TEST_CASE("flows that are repeatedly given up take no credit from later ones") {
  Pair pair({.line = {.delay = 5ms}, .credit_bytes = 16 << 20, .max_streams = 256});
  CarrierId carrier = pair.connect();
  pair.run_for(1s);
  std::uint64_t free_a = pair.a.pool.free_bytes(), free_b = pair.b.pool.free_bytes();
  std::mt19937_64 random(9);
  for (int i = 0; i < 2000; ++i) {
    Stream& stream = pair.a.session.open(FlowsOnPair::simple_request(), pair.now());
    StreamId id = stream.id();
    pair.run_for(std::chrono::milliseconds(random() % 8));
    if (random() % 50 == 0) {
      pair.cut(carrier);
      carrier = pair.connect();
    }
    pair.a.session.release(id);
    if (pair.b.session.find(id)) pair.b.session.release(id);
  }
  pair.run_for(5s);
  for (std::uint64_t id = 1; id < 4001; id += 2)
    if (pair.b.session.find(StreamId(id))) pair.b.session.release(StreamId(id));
  pair.run_for(5s);
  CHECK_FALSE(pair.b.error);
  check_all_forgotten(pair);
  // Free but for the open credit, which may stand anywhere between half and all of its share.
  CHECK(pair.a.pool.free_bytes() >= free_a * 9 / 10);
  CHECK(pair.b.pool.free_bytes() >= free_b * 9 / 10);
}

TEST_CASE("two sessions that share one memory both make progress") {
  TimePoint now{std::chrono::hours(1)};
  constexpr std::uint64_t kCap = 4 << 20;
  CreditPool pool(kCap, 64);
  RetainedBudget retained(kCap);
  CreditPool others_pool(64 << 20, 64);
  RetainedBudget others_retained(64 << 20);
  struct Link {
    Link(CreditPool& pool_here, RetainedBudget& retained_here, CreditPool& pool_there,
         RetainedBudget& retained_there, TimePoint start)
        : here({.side = Side::acceptor, .max_peer_streams = 64}, pool_here, retained_here, nullptr, start),
          there({.side = Side::dialler, .max_peer_streams = 64}, pool_there, retained_there, nullptr, start) {
      here.attach(CarrierId(1), start, 20ms);
      there.attach(CarrierId(1), start, 20ms);
    }
    Session here, there;
    std::uint64_t read = 0;
  };
  std::deque<Link> links;
  for (int i = 0; i < 2; ++i) links.emplace_back(pool, retained, others_pool, others_retained, now);
  // The first peer sends to readers that stop; the second to one that reads.
  bool stuck_opened = false, quick_opened = false;
  for (int step = 0; step < 4000; ++step) {
    now += 5ms;
    if (step == 10) {
      for (int i = 0; i < 20; ++i) links[0].there.open(FlowsOnPair::simple_request(), now);
      stuck_opened = true;
    }
    if (step == 1000) {
      links[1].there.open(FlowsOnPair::simple_request(), now);
      quick_opened = true;
    }
    for (Link& link : links) {
      bool quick = &link == &links[1];
      for (auto [from, to] : {std::pair(&link.there, &link.here), std::pair(&link.here, &link.there)}) {
        from->on_timeout(now);
        Buffer out;
        from->outgoing().transmit(CarrierId(1), 100'000, 16'384, out, now);
        REQUIRE(to->receive(CarrierId(1), out, now));
      }
      if (quick ? quick_opened : stuck_opened)
        for (std::uint64_t id = 1; id < 41; id += 2)
          if (Stream* stream = link.there.find(StreamId(id)))
            stream->writer().write(Buffer(std::min<std::size_t>(stream->writer().may_write(), 50'000)));
      while (auto event = link.here.poll_event())
        if (quick && event->kind == Event::Kind::stream)
          if (Stream* stream = link.here.find(event->stream)) {
            link.read += stream->reader().readable().size();
            stream->reader().consume(stream->reader().readable().size(), now, 20ms);
          }
      while (link.there.poll_event()) {
      }
    }
    REQUIRE(pool.granted_bytes() + 64 * pool.floor_bytes() <= kCap);
  }
  CHECK(links[1].read > 5'000'000);
}
