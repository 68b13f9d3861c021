// SPDX-License-Identifier: Apache-2.0
// Random lives of many flows over carriers that come, switch and go, on both sides, by seed; after every step
// the invariants that must hold at any moment, and at the end that nothing is left.
#include <catch2/catch.hpp>

#include "codecs/reduction/reduction.h"
#include "simulated_flow.h"
#include "toy_codec.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace longhaul::link::simulation;

namespace {

// One side of a flow that may do anything a flow may do, in any order.
struct End {
  Session* session = nullptr;
  std::uint64_t writes_seed = 0, reads_seed = 0;
  std::uint64_t written = 0, read = 0;
  bool paused = false, released = false, aborted = false, wrong = false, was_reset = false,
       read_to_end = false;
};

struct RandomFlow {
  End near, far;
};

class RandomLives {
 public:
  RandomLives(Pair& pair, std::uint64_t seed) : pair_(pair), random_(seed) {
    pair_.a.on_event = [this](const Event& event) { on_event(pair_.a, event); };
    pair_.b.on_event = [this](const Event& event) { on_event(pair_.b, event); };
  }

  void open() {
    Endpoint& side = random_() % 2 ? pair_.a : pair_.b;
    Stream& stream = side.session.open(FlowsOnPair::simple_request(), pair_.now());
    RandomFlow& flow = flows_[stream.id()];
    flow.near = {.session = &side.session, .writes_seed = stream.id() * 2, .reads_seed = stream.id() * 2 + 1};
    flow.far = {.session = nullptr, .writes_seed = stream.id() * 2 + 1, .reads_seed = stream.id() * 2};
    write(flow.near, stream);
  }

  // Something happens to some flow.
  void step() {
    if (flows_.empty()) return;
    auto flow = flows_.lower_bound(random_() % (flows_.rbegin()->first + 1));
    End& end = random_() % 2 ? flow->second.near : flow->second.far;
    Stream* stream = stream_of(flow->first, end);
    if (!stream) return;
    switch (random_() % 24) {
      case 0:
        stream->end();
        break;
      case 1:
        end.aborted = true;
        stream->abort();
        release(flow->first, end);
        break;
      case 2:
        if (random_() % 2) stream->reset(ResetCode::aborted);
        release(flow->first, end);
        break;
      case 3:
      case 4:
        end.paused = true;
        break;
      case 5:
      case 6:
      case 7:
        end.paused = false;
        pump(flow->first, end, *stream);
        break;
      case 8:
        if (stream->may_write() >= message_cost(5)) stream->write_message(as_bytes("twins"));
        break;
      default:
        write(end, *stream);
        pump(flow->first, end, *stream);
    }
  }

  // Every flow reads on, ends and lets go.
  void finish() {
    finishing_ = true;
    for (auto& [id, flow] : flows_)
      for (End* end : {&flow.near, &flow.far})
        if (Stream* stream = stream_of(id, *end)) {
          end->paused = false;
          stream->end();
          pump(id, *end, *stream);
        }
  }

  std::string what_is_wrong() {
    for (Endpoint* side : {&pair_.a, &pair_.b}) {
      if (side->error) return "error: " + side->error.message();
      if (side->retained.used_bytes() != side->session.retained_bytes()) return "retained bytes drift";
    }
    for (auto& [id, flow] : flows_) {
      if (flow.near.wrong || flow.far.wrong) return "wrong bytes in " + std::to_string(id);
      if (flow.near.read > flow.far.written || flow.far.read > flow.near.written)
        return "bytes out of nowhere";
      // Who read to an end that was neither aborted nor reset has everything.
      if (flow.near.read_to_end && !flow.far.aborted && flow.near.read != flow.far.written)
        return "an end before all bytes of " + std::to_string(id);
      if (flow.far.read_to_end && !flow.near.aborted && flow.far.read != flow.near.written)
        return "an end before all bytes of " + std::to_string(id);
    }
    return "";
  }
  std::size_t flows() const { return flows_.size(); }
  std::uint64_t bytes_read() const {
    std::uint64_t sum = 0;
    for (const auto& [id, flow] : flows_) sum += flow.near.read + flow.far.read;
    return sum;
  }

 private:
  Stream* stream_of(StreamId id, End& end) {
    if (!end.session || end.released) return nullptr;
    return end.session->find(id);
  }

  void on_event(Endpoint& side, const Event& event) {
    if (event.kind != Event::Kind::stream) return;
    RandomFlow& flow = flows_[event.stream];
    Stream* stream = side.session.find(event.stream);
    REQUIRE(stream);
    End& end = flow.near.session == &side.session ? flow.near : flow.far;
    REQUIRE_FALSE(end.released);
    if (event.stream_event == EventKind::opened) {
      end.session = &side.session;
      stream->give_answer({});
      if (finishing_) stream->end();
    }
    REQUIRE(end.session == &side.session);
    end.was_reset |= event.stream_event == EventKind::reset;
    if (event.stream_event == EventKind::writable && !finishing_) write(end, *stream);
    pump(event.stream, end, *stream);
  }

  void write(End& end, Stream& stream) {
    std::size_t room =
        std::min<std::size_t>(stream.may_write(), 1 + random_() % (random_() % 8 ? 2000 : 60'000));
    Buffer bytes(room);
    for (std::byte& b : bytes) b = expected_byte(end.writes_seed, end.written++);
    stream.write(bytes);
  }

  void pump(StreamId id, End& end, Stream& stream) {
    if (end.paused || end.released) return;
    while (stream.poll_message(pair_.now(), 20ms) || stream.readable_before_message() > 0) {
      std::size_t size = stream.readable_before_message();
      const SliceQueue& queue = stream.readable();
      queue.visit({queue.begin_offset(), queue.begin_offset() + size}, [&](Bytes piece) {
        for (std::byte b : piece) end.wrong |= b != expected_byte(end.reads_seed, end.read++);
        return true;
      });
      stream.consume(size, pair_.now(), 20ms);
    }
    end.read_to_end |= stream.read_state() == ReadState::ended;
    bool over = stream.read_state() != ReadState::open;
    if (over && (finishing_ || stream.read_state() != ReadState::ended)) {
      if (finishing_) stream.end();
      release(id, end);
    }
  }

  void release(StreamId id, End& end) {
    end.released = true;
    end.session->release(id);
  }

  Pair& pair_;
  std::mt19937_64 random_;
  std::map<StreamId, RandomFlow> flows_;
  bool finishing_ = false;
};

// Credit that is granted never exceeds the cap: what streams hold above their floors is what the pool lacks,
// together with what is set aside for streams to come.
void check_memory(const Endpoint& side, std::uint64_t cap) {
  REQUIRE(side.pool.granted_bytes() <= cap);
  REQUIRE(side.pool.free_bytes() <= cap);
}

void check_all_forgotten(Pair& pair) {
  for (Endpoint* side : {&pair.a, &pair.b}) {
    CHECK(side->session.live_streams() == 0);
    CHECK(side->retained.used_bytes() == 0);
    CHECK_FALSE(side->pool.full());
  }
}

void live_at_random(std::uint64_t seed, BlockCodec* codec_a, BlockCodec* codec_b) {
  std::mt19937_64 random(seed * 7919);
  PairOptions options{.seed = seed,
                      .line = {.bytes_per_second = 3e6, .delay = 10ms, .max_piece = seed % 3 ? 2000u : 300u},
                      .credit_bytes = seed % 2 ? 1u << 20 : 8u << 20,
                      .retained_bytes = 2 << 20,
                      .max_streams = 64};
  Pair pair(options, codec_a, codec_b);
  RandomLives lives(pair, seed);
  // Every second run has carriers of both kinds: of bytes in order, and of packets that get lost.
  auto connect = [&] {
    LineOptions line = options.line;
    if (seed % 2 && random() % 2) line.packet = 1150 + random() % 400, line.loss = 0.2;
    return pair.connect(line);
  };
  std::deque<CarrierId> carriers{connect()};
  for (int step = 0; step < 1500; ++step) {
    switch (random() % 40) {
      case 0:
      case 1:
      case 2:
      case 3:
        lives.open();
        break;
      case 4:
        if (carriers.size() < 3) {
          carriers.push_back(connect());
        } else {
          pair.prefer(random() % 2 ? pair.a : pair.b, carriers[random() % carriers.size()]);
        }
        break;
      case 5:
        if (!carriers.empty() && random() % 2) {
          auto victim = carriers.begin() + static_cast<long>(random() % carriers.size());
          pair.cut(*victim);
          carriers.erase(victim);
        }
        break;
      case 6:
        if (!carriers.empty()) pair.freeze(carriers.back(), std::chrono::milliseconds(random() % 1500));
        break;
      case 7:
      case 8:
        pair.run_for(std::chrono::milliseconds(random() % 60));
        break;
      default:
        lives.step();
        if (random() % 3 == 0) pair.run_for(std::chrono::microseconds(random() % 5000));
    }
    INFO("seed " << seed << ", step " << step);
    REQUIRE(lives.what_is_wrong() == "");
    check_memory(pair.a, options.credit_bytes);
    check_memory(pair.b, options.credit_bytes);
  }
  INFO("seed " << seed);
  if (carriers.empty()) pair.connect();
  lives.finish();
  pair.run_for(40s);
  REQUIRE(lives.what_is_wrong() == "");
  CHECK(lives.bytes_read() > 0);
  check_all_forgotten(pair);
}

}  // namespace

TEST_CASE("random flows over changing carriers keep all invariants") {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) live_at_random(seed, nullptr, nullptr);
}

TEST_CASE("random sequences of flows whose blocks depend on each other keep all invariants") {
  for (std::uint64_t seed = 1; seed <= 15; ++seed) {
    const ToyCodec::Options toy{.waits = 0.2, .gone = seed % 3 ? 0 : 0.02, .passes = 0.1, .seed = seed};
    ToyCodec codec_a(toy), codec_b(toy);
    live_at_random(seed, &codec_a, &codec_b);
    INFO("seed " << seed);
    CHECK(codec_a.broken == "");
    CHECK(codec_b.broken == "");
    CHECK(codec_a.waiting() + codec_b.waiting() == 0);
  }
}

TEST_CASE("random sequences of flows with real dictionaries keep all invariants") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const reduction::Options options{.ring_bytes = 16 << 20, .peer_ring_bytes = 16 << 20, .epoch = seed};
    reduction::Reduction codec_a(options), codec_b(options);
    live_at_random(seed, &codec_a, &codec_b);
    INFO("seed " << seed);
    CHECK(codec_a.counters().decoder.failed + codec_b.counters().decoder.failed == 0);
  }
}

TEST_CASE("an hour of random outages with flows that start and end all the time") {
  std::mt19937_64 random(5);
  Pair pair({.seed = 5, .line = {.bytes_per_second = 1e6, .delay = 40ms}, .max_streams = 512});
  RandomLives lives(pair, 5);
  CarrierId carrier = pair.connect();
  int outages = 0;
  TimePoint end = pair.now() + 1h;
  while (pair.now() < end) {
    for (int i = 0; i < 40; ++i) {
      if (random() % 20 == 0 && pair.a.session.live_streams() < 60) lives.open();
      lives.step();
      pair.run_for(std::chrono::milliseconds(random() % 1000));
    }
    REQUIRE(lives.what_is_wrong() == "");
    // Shorter than the minute that streams are kept.
    if (random() % 3 == 0) {
      pair.cut(carrier);
      pair.run_for(std::chrono::milliseconds(random() % (random() % 4 ? 1000 : 58'000)));
      carrier = pair.connect();
      ++outages;
    } else if (random() % 3 == 0) {
      pair.freeze(carrier, std::chrono::milliseconds(random() % 20'000));
    }
  }
  CHECK(outages > 20);
  CHECK(lives.flows() > 150);
  lives.finish();
  pair.run_for(60s);
  CHECK(lives.what_is_wrong() == "");
  check_all_forgotten(pair);
}

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
  for (StreamId id = 1; id < 4001; id += 2)
    if (pair.b.session.find(id)) pair.b.session.release(id);
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
      here.attach(1, start, 20ms);
      there.attach(1, start, 20ms);
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
        from->outgoing().transmit(1, 100'000, 16'384, out, now);
        REQUIRE(to->receive(1, out, now));
      }
      if (quick ? quick_opened : stuck_opened)
        for (StreamId id = 1; id < 41; id += 2)
          if (Stream* stream = link.there.find(id))
            stream->write(Buffer(std::min<std::size_t>(stream->may_write(), 50'000)));
      while (auto event = link.here.poll_event())
        if (quick && event->kind == Event::Kind::stream)
          if (Stream* stream = link.here.find(event->stream)) {
            link.read += stream->readable().size();
            stream->consume(stream->readable().size(), now, 20ms);
          }
      while (link.there.poll_event()) {
      }
    }
    REQUIRE(pool.granted_bytes() + 64 * pool.floor_bytes() <= kCap);
  }
  CHECK(links[1].read > 5'000'000);
}
