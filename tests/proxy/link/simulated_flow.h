// SPDX-License-Identifier: Apache-2.0
// Flows on a simulated pair: one writes a seeded stream of bytes as credit allows, one reads and compares
// every byte.
#pragma once
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "numbers.h"
#include "proxy/link/session.h"
#include "simulated_pair.h"

namespace longhaul::link::simulation {

// The eight bytes of a flow's stream from a multiple of eight on, the same on both sides.
inline std::uint64_t expected_word(std::uint64_t seed, std::uint64_t word) {
  std::uint64_t x = word * 0x9e3779b97f4a7c15ull + seed;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 32;
  return x;
}
inline std::byte expected_byte(std::uint64_t seed, std::uint64_t position) {
  return std::byte(expected_word(seed, position >> 3) >> (8 * (position & 7)) & 0xff);
}
// Many bytes in a fraction of the time.
inline void fill_expected(std::uint64_t seed, std::uint64_t position, MutableBytes out) {
  std::size_t done = 0;
  while (done < out.size()) {
    if ((position + done) % 8 || out.size() - done < 8) {
      out[done] = expected_byte(seed, position + done);
      ++done;
      continue;
    }
    const std::uint64_t word = expected_word(seed, (position + done) >> 3);
    for (std::size_t i = 0; i < 8; ++i) out[done + i] = std::byte(word >> (8 * i) & 0xff);
    done += 8;
  }
}

struct Writer {
  std::uint64_t seed = 0;
  std::uint64_t total = 0;
  std::uint64_t written = 0;
  bool end_after = true;

  void pump(Stream& stream) {
    while (written < total) {
      std::size_t room = std::min<std::uint64_t>(stream.writer().may_write(), total - written);
      if (room == 0) return;
      Buffer bytes(std::min<std::size_t>(room, 100'000));
      fill_expected(seed, written, bytes);
      stream.writer().write(bytes);
      written += bytes.size();
    }
    if (end_after) stream.writer().end();
  }
  bool done() const { return end_after && written == total; }
};

struct Reader {
  std::uint64_t seed = 0;
  std::uint64_t read = 0;
  bool wrong = false;
  bool paused = false;
  bool ended = false, aborted = false, reset = false;
  std::function<void()> on_read{};  // something was
  Buffer expected{};                // kept for its capacity

  void pump(Stream& stream, TimePoint now, Duration rtt) {
    if (paused) return;
    const SliceQueue& queue = stream.reader().readable();
    std::size_t size = queue.size();
    queue.visit({queue.begin_offset(), queue.end_offset()}, [&](Bytes piece) {
      expected.resize(std::max(expected.size(), piece.size()));
      fill_expected(seed, read, std::span(expected).first(piece.size()));
      wrong |= !std::equal(piece.begin(), piece.end(), expected.begin());
      read += piece.size();
      return true;
    });
    if (size) stream.reader().consume(size, now, rtt);
    ended |= stream.reader().state() == ReadState::ended;
    aborted |= stream.reader().state() == ReadState::aborted;
    reset |= stream.reader().state() == ReadState::reset;
    if (size && on_read) on_read();
  }
};

// A flow of both sides: the client on `a` asks, the server on `b` answers, both directions may carry bytes.
struct Flow {
  Writer client_writes, server_writes;
  Reader client_reads, server_reads;
  StreamId id;
  bool answered = false;
  bool client_reset = false, server_reset = false, server_stopped = false, client_stopped = false;

  bool complete() const {
    return client_reads.ended && server_reads.ended && client_reads.read == server_writes.total &&
           server_reads.read == client_writes.total;
  }
  bool right() const { return !client_reads.wrong && !server_reads.wrong; }
};

// On any pair with sessions at its ends `a` and `b`.
template <class AnyPair>
class FlowsOn {
 public:
  explicit FlowsOn(AnyPair& pair) : pair_(pair) {
    pair_.a.on_event = [this](const Event& event) { on_a(event); };
    pair_.b.on_event = [this](const Event& event) { on_b(event); };
  }

  Flow& start(std::uint64_t upload, std::uint64_t download, OpenRequest request = simple_request(),
              bool ends = true) {
    request.destination.port = static_cast<std::uint16_t>(1 + flows_.size() % 60000);
    Stream& stream = pair_.a.session.open(std::move(request), pair_.now());
    Flow& flow = flows_[stream.id()];
    flow.id = stream.id();
    const std::uint64_t seed = stream.id().number() * 2;
    flow.client_writes = {.seed = seed, .total = upload};
    flow.server_reads = {.seed = seed};
    flow.server_writes = {.seed = seed + 1, .total = download};
    flow.client_reads = {.seed = seed + 1};
    flow.client_writes.end_after = flow.server_writes.end_after = ends;
    flow.client_writes.pump(stream);
    return flow;
  }
  // Whose directions stay open: more can be written by raising a writer's total.
  Flow& start_open(OpenRequest request = simple_request()) { return start(0, 0, std::move(request), false); }

  template <class AnyEndpoint>
  void resume_reader(Flow& flow, AnyEndpoint& side) {
    Reader& reader = &side == &pair_.a ? flow.client_reads : flow.server_reads;
    reader.paused = false;
    if (Stream* stream = side.session.find(flow.id))
      reader.pump(*stream, pair_.now(), side.session.liveness().smoothed_rtt());
  }

  bool all_complete() const {
    return std::all_of(flows_.begin(), flows_.end(), [](const auto& f) { return f.second.complete(); });
  }
  bool all_right() const {
    return std::all_of(flows_.begin(), flows_.end(), [](const auto& f) { return f.second.right(); });
  }

  const std::map<StreamId, Flow>& flows() const { return flows_; }

  static OpenRequest simple_request() {
    OpenRequest request;
    request.destination.address = boost::asio::ip::make_address("10.10.2.2");
    request.destination.port = 445;
    return request;
  }

 private:
  void on_a(const Event& event) {
    if (event.kind != Event::Kind::stream || !flows_.contains(event.stream)) return;
    Flow& flow = flows_[event.stream];
    Stream* stream = pair_.a.session.find(event.stream);
    if (!stream) return;
    flow.answered |= event.stream_event == EventKind::answered;
    flow.client_reset |= event.stream_event == EventKind::reset;
    flow.client_stopped |= event.stream_event == EventKind::stopped;
    flow.client_writes.pump(*stream);
    flow.client_reads.pump(*stream, pair_.now(), pair_.a.session.liveness().smoothed_rtt());
    if (flow.client_reads.ended && flow.client_writes.done()) pair_.a.session.release(event.stream);
  }
  void on_b(const Event& event) {
    if (event.kind != Event::Kind::stream || !flows_.contains(event.stream)) return;
    Flow& flow = flows_[event.stream];
    Stream* stream = pair_.b.session.find(event.stream);
    if (!stream) return;
    flow.server_reset |= event.stream_event == EventKind::reset;
    flow.server_stopped |= event.stream_event == EventKind::stopped;
    if (event.stream_event == EventKind::opened) stream->give_answer({});
    flow.server_writes.pump(*stream);
    flow.server_reads.pump(*stream, pair_.now(), pair_.b.session.liveness().smoothed_rtt());
    if (flow.server_reads.ended && flow.server_writes.done()) pair_.b.session.release(event.stream);
  }

  AnyPair& pair_;
  std::map<StreamId, Flow> flows_;
};

using FlowsOnPair = FlowsOn<Pair>;

// Credit that is granted never exceeds the cap: what streams hold above their floors is what the pool lacks,
// together with what is set aside for streams to come.
inline void check_memory(const Endpoint& side, std::uint64_t cap) {
  REQUIRE(side.pool.granted_bytes() <= cap);
  REQUIRE(side.pool.free_bytes() <= cap);
}

inline void check_all_forgotten(Pair& pair) {
  for (Endpoint* side : {&pair.a, &pair.b}) {
    CHECK(side->session.state().live_streams == 0);
    CHECK(side->retained.used_bytes() == 0);
    CHECK_FALSE(side->pool.full());
  }
}

}  // namespace longhaul::link::simulation
