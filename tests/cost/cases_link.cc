// SPDX-License-Identifier: Apache-2.0
// The input of a session from a peer with a valid key.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <unordered_set>

#include "cost/cases.h"
#include "cost/counter.h"
#include "proxy/link/session.h"

namespace longhaul::cost {
namespace {

using namespace longhaul::link;
using namespace std::chrono_literals;

// A session like that of a daemon, whose peer reads nothing.
class Peer {
 public:
  explicit Peer(std::uint64_t cap = 192 << 20, std::uint32_t streams = 32'768,
                std::uint64_t work_per_turn = WorkBudget::kUnlimited)
      : pool_(cap, streams),
        retained_(cap),
        session_({.max_peer_streams = streams, .work_per_turn = work_per_turn}, pool_, retained_, nullptr,
                 now_) {
    session_.attach(CarrierId(1), now_, 20ms);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // False: the session is over.
  bool send(const Frame& frame) {
    bytes_.clear();
    write_frame(frame, bytes_);
    paid_ += bytes_.size();
    return session_.receive(CarrierId(1), bytes_, now_).has_value();
  }
  bool send_stream(StreamId stream, std::uint64_t offset, Bytes bytes) {
    return send(StreamFrame{stream, StreamOffset(offset), bytes});
  }
  Session& session() { return session_; }
  TimePoint now() const { return now_; }
  void pass(Duration time) { now_ += time; }
  void events() {
    while (session_.poll_event()) {
    }
  }
  std::uint64_t paid() {
    events();
    return paid_;
  }

 private:
  TimePoint now_{1h};
  CreditPool pool_;
  RetainedBudget retained_;
  Session session_;
  Buffer bytes_;
  std::uint64_t paid_ = 0;
};

// The peer's streams have even numbers: this side dialled.
StreamId peers(std::uint64_t number) { return StreamId(2 * number + 2); }

void add_record(RecordType type, Bytes body, Buffer& out) {
  write_record_head(type, body.size(), out);
  append(out, body);
}

Buffer an_open(std::uint64_t reverse_credit = 0) {
  OpenRequest request;
  request.destination.port = 80;
  request.reverse_credit = reverse_credit;
  Buffer body, wire;
  write_open(request, body);
  add_record(RecordType::open, body, wire);
  return wire;
}

std::uint64_t resets_with_gaps(std::size_t size) {
  Peer peer;
  for (std::size_t i = size; i > 0 && peer.send(ResetFrame{peers(2 * i), ResetCode::aborted}); --i) {
  }
  return peer.paid();
}

// All in one bucket of a table of so many, if a number were its own hash.
std::uint64_t resets_that_collide(std::size_t size) {
  std::unordered_set<std::uint64_t> table;
  for (std::uint64_t i = 0; i < size; ++i) table.insert(i);
  const std::uint64_t buckets = table.bucket_count();
  Peer peer;
  for (std::uint64_t i = 1; i <= size && peer.send(ResetFrame{StreamId(2 * buckets * i), ResetCode::aborted});
       ++i) {
  }
  return peer.paid();
}

std::uint64_t opens_that_never_end(std::size_t size) {
  Peer peer;
  Buffer part;
  write_record_head(RecordType::open, kMaxShortRecordBody, part);
  part.resize(100);
  for (std::size_t i = 0; i < size && peer.send_stream(peers(i), 0, part); ++i) {
  }
  return peer.paid();
}

std::uint64_t opens_and_resets(std::size_t size) {
  Peer peer;
  const Buffer open = an_open();
  for (std::size_t i = 0; i < size; ++i) {
    if (!peer.send_stream(peers(i), 0, open) || !peer.send(ResetFrame{peers(i), ResetCode::aborted})) break;
    peer.events();
  }
  return peer.paid();
}

std::uint64_t single_bytes_behind_gaps(std::size_t size) {
  Peer peer;
  const Buffer one(1);
  for (std::size_t i = size; i > 0 && peer.send_stream(peers(0), 2 * i, one); --i) {
  }
  return peer.paid();
}

std::uint64_t features_all_the_time(std::size_t size) {
  Peer peer;
  std::uint64_t at = 0;
  Buffer wire;
  for (std::size_t i = 0; i < size; ++i) {
    const std::byte body[] = {std::byte{10}, std::byte(i % 2)};
    wire.clear();
    add_record(RecordType::allowed, body, wire);
    if (!peer.send_stream(kControlStream, at, wire)) break;
    at += wire.size();
  }
  return peer.paid();
}

std::uint64_t empty_messages(std::size_t size) {
  Peer peer;
  Buffer wire = an_open();
  for (std::size_t i = 0; i < size; ++i) add_record(RecordType::data, {}, wire);
  for (std::size_t at = 0; at < wire.size(); at += kMaxStreamPayload)
    if (!peer.send_stream(peers(0), at,
                          Bytes(wire).subspan(at, std::min(kMaxStreamPayload, wire.size() - at))))
      break;
  return peer.paid();
}

std::uint64_t acknowledgements_of_nothing(std::size_t size) {
  Peer peer;
  AckFrame ack;
  for (std::size_t i = 0; i < 20'000; ++i) ack.entries.push_back({StreamId(i), StreamOffset(5)});
  for (std::size_t i = 0; i < size && peer.send(ack); ++i) {
  }
  return peer.paid();
}

// The longest of several turns.
class Turns {
 public:
  template <class Turn>
  void take(const Turn& turn) {
    const std::uint64_t before = steps();
    turn();
    longest_ = std::max(longest_, steps() - before);
  }
  std::uint64_t longest() const { return longest_; }

 private:
  std::uint64_t longest_ = 0;
};

// Of each kind: opened, unfinished OPENs, and those that are reset and of which the peer does not say that it
// knows.
std::uint64_t a_session_of_many_streams_ends(std::size_t size) {
  constexpr std::size_t kMostUnopened = 4000;
  Peer peer(1 << 30, static_cast<std::uint32_t>(size));
  const Buffer open = an_open();
  const Bytes part = Bytes(open).first(open.size() / 2);
  for (std::size_t i = 0; i < size; ++i) {
    if (!peer.send_stream(peers(i), 0, i < kMostUnopened ? part : Bytes(open))) std::abort();
    if (i % 3 == 0 && i >= kMostUnopened) (void)peer.send(ResetFrame{peers(i), ResetCode::no_reader});
  }
  peer.events();
  Turns turns;
  turns.take([&] { peer.session().abandon(peer.now()); });
  turns.take([&] { peer.session().detach(CarrierId(1), peer.now()); });
  constexpr std::size_t kAtOnce = 16;  // as a link
  for (bool left = true; left;)
    turns.take([&] {
      left = peer.session().end_streams(kAtOnce);
      while (const auto event = peer.session().poll_event())
        if (event->kind == Event::Kind::stream) peer.session().release(event->stream);
    });
  if (peer.session().state().live_streams > 0) std::abort();
  return turns.longest();
}

// Streams on which both sides have written, as a link holds them that carries many flows.
class ManyStreams {
 public:
  explicit ManyStreams(std::size_t size) : peer_(1 << 30, static_cast<std::uint32_t>(size), kWork) {
    const Buffer bytes(100);
    const Buffer open = an_open(bytes.size());
    for (std::size_t i = 0; i < size; ++i) {
      session().work().begin_turn();
      if (!peer_.send_stream(peers(i), 0, open)) std::abort();
      peer_.events();
      Stream& stream = *session().find(peers(i));
      stream.give_answer({});
      stream.writer().write(bytes);
      transmit(CarrierId(1));
    }
  }
  Session& session() { return peer_.session(); }
  Peer& peer() { return peer_; }
  void transmit(CarrierId carrier) {
    frames_.clear();
    session().outgoing().transmit(carrier, 64 * 1024, 16 * 1024, frames_, peer_.now());
  }
  // One turn of the loop, and then as many as it takes until nothing is left to do or to say.
  template <class Begin>
  void take(CarrierId carrier, const Begin& begin) {
    turns_.take([&] { begin(); });
    while (session().state().has_work_left || session().outgoing().wants_to_transmit(carrier, peer_.now())) {
      turns_.take([&] {
        session().work().begin_turn();
        if (!session().go_on(peer_.now())) std::abort();
        peer_.events();
      });
      turns_.take([&] {
        session().work().begin_turn();
        transmit(carrier);
      });
    }
  }
  std::uint64_t longest() const { return turns_.longest(); }

 private:
  static constexpr std::uint64_t kWork = 4 << 20;  // as a link
  Peer peer_;
  FrameBatch frames_;
  Turns turns_;
};

std::uint64_t a_carrier_is_replaced(std::size_t size) {
  ManyStreams many(size);
  Session& session = many.session();
  many.take(CarrierId(2), [&] { session.attach(CarrierId(2), many.peer().now(), 20ms); });
  many.take(CarrierId(2), [&] { session.detach(CarrierId(1), many.peer().now()); });
  many.take(CarrierId(2), [&] { session.prefer(CarrierId(1), many.peer().now()); });  // nothing: it is gone
  for (std::size_t i = 0; i < size; ++i)
    if (session.find(peers(i))->writer().output().sending().repeats()) std::abort();
  return many.longest();
}

std::uint64_t memory_is_reclaimed(std::size_t size) {
  ManyStreams many(size);
  Session& session = many.session();
  for (int i = 0; i < 5; ++i) {
    many.peer().pass(1s);
    many.take(CarrierId(1), [&] {
      session.work().begin_turn();
      session.on_timeout(many.peer().now());
    });
  }
  return many.longest();
}

std::uint64_t retained_bytes_are_asked_for(std::size_t size) {
  ManyStreams many(size);
  Turns turns;
  turns.take([&] {
    if (many.session().state().retained_bytes < size) std::abort();
  });
  return turns.longest();
}

}  // namespace

const std::vector<TurnCase>& turn_cases() {
  static const std::vector<TurnCase> cases = {
      {"session: its end, with 80,000 streams", 16 * 2'000, 80'000, a_session_of_many_streams_ends},
      {"session: a carrier is replaced, with 80,000 streams", 3'000'000, 80'000, a_carrier_is_replaced},
      {"session: memory is reclaimed, with 80,000 streams", 800'000, 80'000, memory_is_reclaimed},
      {"session: its retained bytes, with 80,000 streams", 100, 80'000, retained_bytes_are_asked_for},
  };
  return cases;
}

// A session's bound: proxy/link/README.md.
const std::vector<Case>& link_cases() {
  static const std::vector<Case> cases = {
      {"session: resets that leave gaps", 200, 60'000, resets_with_gaps},
      {"session: resets whose streams collide", 200, 60'000, resets_that_collide},
      {"session: opens that never end", 200, 30'000, opens_that_never_end},
      {"session: opens and resets", 200, 30'000, opens_and_resets},
      {"session: single bytes behind gaps", 200, 30'000, single_bytes_behind_gaps},
      {"session: what the peer allows, all the time", 200, 100'000, features_all_the_time},
      {"session: empty records", 200, 500'000, empty_messages},
      {"session: acknowledgements of streams that are not there", 200, 20, acknowledgements_of_nothing},
  };
  return cases;
}

}  // namespace longhaul::cost
