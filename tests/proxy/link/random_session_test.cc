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
    const std::uint64_t seed = stream.id().number() * 2;
    flow.near = {.session = &side.session, .writes_seed = seed, .reads_seed = seed + 1};
    flow.far = {.session = nullptr, .writes_seed = seed + 1, .reads_seed = seed};
    write(flow.near, stream);
  }

  // Something happens to some flow.
  void step() {
    if (flows_.empty()) return;
    auto flow = flows_.lower_bound(StreamId(random_() % (flows_.rbegin()->first.number() + 1)));
    End& end = random_() % 2 ? flow->second.near : flow->second.far;
    Stream* stream = stream_of(flow->first, end);
    if (!stream) return;
    switch (random_() % 24) {
      case 0:
        stream->writer().end();
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
        if (stream->writer().may_write() >= message_cost(5))
          stream->writer().write_message(as_bytes("twins"));
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
          stream->writer().end();
          pump(id, *end, *stream);
        }
  }

  std::string what_is_wrong() {
    for (Endpoint* side : {&pair_.a, &pair_.b}) {
      if (side->error) return "error: " + side->error.message();
      if (side->retained.used_bytes() != side->session.state().retained_bytes) return "retained bytes drift";
    }
    for (auto& [id, flow] : flows_) {
      if (flow.near.wrong || flow.far.wrong) return "wrong bytes in " + std::to_string(id.number());
      if (flow.near.read > flow.far.written || flow.far.read > flow.near.written)
        return "bytes out of nowhere";
      // Who read to an end that was neither aborted nor reset has everything.
      if (flow.near.read_to_end && !flow.far.aborted && flow.near.read != flow.far.written)
        return "an end before all bytes of " + std::to_string(id.number());
      if (flow.far.read_to_end && !flow.near.aborted && flow.far.read != flow.near.written)
        return "an end before all bytes of " + std::to_string(id.number());
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
      if (finishing_) stream->writer().end();
    }
    REQUIRE(end.session == &side.session);
    end.was_reset |= event.stream_event == EventKind::reset;
    if (event.stream_event == EventKind::writable && !finishing_) write(end, *stream);
    pump(event.stream, end, *stream);
  }

  void write(End& end, Stream& stream) {
    std::size_t room =
        std::min<std::size_t>(stream.writer().may_write(), 1 + random_() % (random_() % 8 ? 2000 : 60'000));
    Buffer bytes(room);
    for (std::byte& b : bytes) b = expected_byte(end.writes_seed, end.written++);
    stream.writer().write(bytes);
  }

  void pump(StreamId id, End& end, Stream& stream) {
    if (end.paused || end.released) return;
    while (stream.reader().poll_message(pair_.now(), 20ms) || stream.reader().readable_before_message() > 0) {
      std::size_t size = stream.reader().readable_before_message();
      const SliceQueue& queue = stream.reader().readable();
      queue.visit({queue.begin_offset(), queue.begin_offset() + size}, [&](Bytes piece) {
        for (std::byte b : piece) end.wrong |= b != expected_byte(end.reads_seed, end.read++);
        return true;
      });
      stream.reader().consume(size, pair_.now(), 20ms);
    }
    end.read_to_end |= stream.reader().state() == ReadState::ended;
    bool over = stream.reader().state() != ReadState::open;
    if (over && (finishing_ || stream.reader().state() != ReadState::ended)) {
      if (finishing_) stream.writer().end();
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
      if (random() % 20 == 0 && pair.a.session.state().live_streams < 60) lives.open();
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
