// SPDX-License-Identifier: Apache-2.0
// One session whose peer is the test: frames are handed to it as a peer would send them, honest or not, and
// what it sends comes back as frames.
#pragma once
#include <catch2/catch.hpp>
#include <deque>

#include "numbers.h"
#include "proxy/link/session.h"

namespace longhaul::link::simulation {

using namespace std::chrono_literals;

inline OpenRequest some_request() {
  OpenRequest request;
  request.destination.address = boost::asio::ip::make_address("10.10.2.2");
  request.destination.port = 445;
  return request;
}

inline Buffer record(RecordType type, Bytes body = {}) {
  Buffer bytes;
  write_record_head(type, body.size(), bytes);
  bytes.insert(bytes.end(), body.begin(), body.end());
  return bytes;
}
inline Buffer open_record(const OpenRequest& request) {
  Buffer body;
  write_open(request, body);
  return record(RecordType::open, body);
}
inline Buffer answer_record(const OpenAnswer& answer = {}) {
  Buffer body;
  write_answer(answer, body);
  return record(RecordType::answer, body);
}
inline Buffer joined(std::initializer_list<Buffer> parts) {
  Buffer whole;
  for (const Buffer& part : parts) whole.insert(whole.end(), part.begin(), part.end());
  return whole;
}

class HandPeer {
 public:
  // `side` is the session's: the peer's streams have the numbers of the other side.
  explicit HandPeer(Side side = Side::acceptor, std::uint64_t cap = 8 << 20, std::uint32_t max_streams = 64)
      : pool(cap, max_streams),
        retained(cap),
        session({.side = side, .max_peer_streams = max_streams}, pool, retained, nullptr, now) {
    session.attach(carrier, now, 20ms);
    frames();
  }

  Result<void> send(const Frame& frame) {
    Buffer bytes;
    write_frame(frame, bytes);
    return session.receive(carrier, bytes, now);
  }
  Result<void> send_stream(StreamId stream, std::uint64_t offset, const Buffer& bytes) {
    return send(StreamFrame{stream, StreamOffset(offset), bytes});
  }
  void pass(Duration time) {
    now += time;
    session.on_timeout(now);
  }

  // What the session has to say now, on its newest carrier.
  std::vector<Frame> frames() {
    std::vector<Frame> list;
    Buffer& out = kept_.emplace_back();
    session.outgoing().transmit(carrier, 1 << 20, chunk, out, now);
    largest_frame = 0;
    for (Bytes rest = out; !rest.empty();) {
      auto parsed = parse_frame(rest);
      REQUIRE(parsed.has_value());
      REQUIRE(parsed->has_value());
      list.push_back(*(*parsed)->frame);
      largest_frame = std::max(largest_frame, (*parsed)->consumed);
      rest = rest.subspan((*parsed)->consumed);
    }
    return list;
  }
  template <class Kind>
  std::vector<Kind> frames_of() {
    std::vector<Kind> list;
    for (const Frame& frame : frames())
      if (auto* of_kind = std::get_if<Kind>(&frame)) list.push_back(*of_kind);
    return list;
  }
  std::vector<Event> events() {
    std::vector<Event> list;
    while (auto event = session.poll_event()) list.push_back(*event);
    return list;
  }
  std::vector<EventKind> events_of(StreamId stream) {
    std::vector<EventKind> list;
    for (const Event& event : events())
      if (event.kind == Event::Kind::stream && event.stream == stream) list.push_back(event.stream_event);
    return list;
  }

  TimePoint now{std::chrono::hours(1)};
  CarrierId carrier{1};
  CreditPool pool;
  RetainedBudget retained;
  Session session;
  std::size_t largest_frame = 0;
  std::size_t chunk = 16 * 1024;  // of a stream, while others wait

 private:
  std::deque<Buffer> kept_;  // frames borrow from here
};

}  // namespace longhaul::link::simulation
