// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/udp_endpoint.h"

#include <cstring>
#include <thread>

#include "proxy/loopback.h"

namespace longhaul::link::udp {
namespace {

using namespace longhaul::testing;
using Id = std::array<std::byte, UdpEndpoint::kConnectionIdBytes>;
using Answers = UdpEndpoint::Answers;

UdpAddress any(const char* address) { return {asio::ip::make_address(address), 0}; }
UdpAddress at(const char* address, std::uint16_t port) { return {asio::ip::make_address(address), port}; }

std::unique_ptr<UdpEndpoint> open(asio::io_context& io, const char* address,
                                  Answers answers = Answers::from_address_used) {
  auto opened = UdpEndpoint::open(io, any(address), answers);
  INFO((opened ? std::string() : opened.error().message()));
  REQUIRE(opened);
  return std::move(*opened);
}

Id id_of(int number) {
  Id id{};
  std::memcpy(id.data(), &number, sizeof number);
  return id;
}

// `count` datagrams of `size` bytes, the last of `last`: a flags byte, the id, a number, a pattern of that
// number.
DatagramBatch batch_of(const UdpAddress& to, const Id& id, std::size_t count, std::size_t size,
                       std::size_t last) {
  DatagramBatch batch;
  batch.to = to;
  batch.segment_bytes = size;
  for (std::size_t i = 0; i < count; ++i) {
    Buffer one(i + 1 == count ? last : size, std::byte(i * 7 + 1));
    one[0] = std::byte{0x40};
    std::copy(id.begin(), id.end(), one.begin() + 1);
    append(batch.bytes, one);
  }
  return batch;
}

// Keeps what came, in order; sends it back where that is asked for.
struct Taker final : UdpEndpoint::Receiver {
  std::vector<Buffer> datagrams;
  UdpEndpoint::Arrival last;
  int turns = 0, writable = 0;
  std::function<void()> at_turn_end;

  void on_datagram(std::span<std::byte> datagram, const UdpEndpoint::Arrival& arrival) override {
    datagrams.emplace_back(datagram.begin(), datagram.end());
    last = arrival;
  }
  void on_turn_end() override {
    ++turns;
    if (at_turn_end) at_turn_end();
  }
  void on_writable() override { ++writable; }
};

// For two carriers, of one size, from one sender: the kernel joins them whatever their ids are.
DatagramBatch batch_for_both(const UdpAddress& to, std::size_t first, std::size_t second, std::size_t size) {
  DatagramBatch mixed = batch_of(to, id_of(1), first, size, size);
  append(mixed.bytes, batch_of(to, id_of(2), second, size, size).bytes);
  return mixed;
}

// Runs the loop until the condition holds.
template <class Condition>
void until(asio::io_context& io, Condition condition) {
  const auto deadline = Clock::now() + 10s;
  while (!condition()) {
    REQUIRE(Clock::now() < deadline);
    io.restart();
    io.run_one_for(100ms);
  }
}

const asio::ip::address kByRoute{};

TEST_CASE("a batch arrives whole and in order, over IPv4 and IPv6, segmented by the kernel or here") {
  const char* address = GENERATE("127.0.0.1", "::1");
  const bool kernel = GENERATE(true, false);
  CAPTURE(address, kernel);
  asio::io_context io;
  auto here = open(io, address), there = open(io, address);
  if (!kernel) here->segment_here();
  Taker sender, taker;
  there->add(id_of(7), taker);
  for (auto [count, size, last] : {std::tuple<std::size_t, std::size_t, std::size_t>{1, 40, 40},
                                   {2, 1200, 1},
                                   {40, 1472, 1472},
                                   {53, 1200, 700},
                                   {64, 900, 900},
                                   {7, 8972, 11}}) {
    if (last < 9) last = 9;
    CAPTURE(count, size, last);
    auto batch = batch_of(there->local(), id_of(7), count, size, last);
    const Buffer expected = batch.bytes;
    REQUIRE(here->send(batch, kByRoute, sender) == UdpEndpoint::Sent::yes);
    CHECK(batch.bytes.empty());
    taker.datagrams.clear();
    until(io, [&] { return taker.datagrams.size() >= count; });
    until(io, [&] { return taker.turns > 0; });
    REQUIRE(taker.datagrams.size() == count);
    Buffer got;
    for (const Buffer& one : taker.datagrams) append(got, one);
    CHECK(got == expected);
    CHECK(taker.datagrams.back().size() == last);
  }
  CHECK(here->segments_in_kernel() == kernel);
  CHECK(there->counters().datagrams_received == 1 + 2 + 40 + 53 + 64 + 7);
  CHECK(here->counters().datagrams_sent == there->counters().datagrams_received);
  CHECK(there->counters().unknown == 0);
}

TEST_CASE("a datagram's arrival time is that of the kernel, not that of the read") {
  const char* address = GENERATE("127.0.0.1", "::1");
  asio::io_context io;
  auto here = open(io, address), there = open(io, address);
  Taker sender, taker;
  there->add(id_of(7), taker);
  TimePoint sent;
  const auto lie_in_the_socket = [&](Duration time) {
    auto batch = batch_of(there->local(), id_of(7), 1, 100, 100);
    const int turns = taker.turns;
    sent = Clock::now();
    REQUIRE(here->send(batch, kByRoute, sender) == UdpEndpoint::Sent::yes);
    std::this_thread::sleep_for(time);  // a busy host
    until(io, [&] { return taker.turns > turns; });
  };
  // Linux begins to stamp what arrives a moment after the first socket asked, by a work queue. Until then it
  // says when a datagram was read.
  for (int i = 0; i < 200; ++i) {
    lie_in_the_socket(10ms);
    if (taker.last.at <= taker.last.now - 8ms) break;
  }
  for (int i = 0; i < 2; ++i) {
    lie_in_the_socket(200ms);
    CHECK(taker.last.now - sent >= 200ms);
    // Two clocks are read one after the other; on a busy host each reader may be interrupted between them.
    CHECK(taker.last.at >= sent - 100ms);
    CHECK(taker.last.at <= taker.last.now - 100ms);
  }
}

TEST_CASE("a burst of datagrams for several carriers reaches each one, and its turn ends once") {
  asio::io_context io;
  auto here = open(io, "127.0.0.1"), there = open(io, "127.0.0.1");
  Taker sender, one, two;
  there->add(id_of(1), one);
  there->add(id_of(2), two);
  auto mixed = batch_for_both(there->local(), 3, 2, 600);
  REQUIRE(here->send(mixed, kByRoute, sender) == UdpEndpoint::Sent::yes);
  until(io, [&] { return one.turns > 0 && two.turns > 0; });
  CHECK(one.datagrams.size() == 3);
  CHECK(two.datagrams.size() == 2);
  CHECK(one.turns == 1);
  CHECK(two.turns == 1);
}

TEST_CASE("datagrams from unknown senders are counted and not delivered") {
  asio::io_context io;
  auto here = open(io, "127.0.0.1"), there = open(io, "127.0.0.1");
  Taker sender, taker;
  there->add(id_of(1), taker);
  there->add(id_of(3), taker);
  there->remove(id_of(3), taker);
  for (std::size_t size : {0u, 1u, 8u}) {
    auto tiny = batch_of(there->local(), id_of(1), 1, 9, 9);
    tiny.bytes.resize(size);
    tiny.segment_bytes = std::max<std::size_t>(size, 1);
    here->send(tiny, kByRoute, sender);
  }
  for (int id : {2, 3}) {
    auto batch = batch_of(there->local(), id_of(id), 5, 100, 100);
    REQUIRE(here->send(batch, kByRoute, sender) == UdpEndpoint::Sent::yes);
  }
  auto known = batch_of(there->local(), id_of(1), 1, 9, 9);
  REQUIRE(here->send(known, kByRoute, sender) == UdpEndpoint::Sent::yes);
  until(io, [&] { return taker.turns > 0; });
  CHECK(taker.datagrams.size() == 1);
  CHECK(there->counters().unknown >= 12);
  CHECK(there->counters().sends == 0);
}

TEST_CASE("an endpoint on all addresses answers from the address that was used, in both families") {
  asio::io_context io;
  auto server = open(io, "::");
  const char* used = GENERATE("127.0.0.1", "127.0.0.9", "::1");
  CAPTURE(used);
  const bool v4 = asio::ip::make_address(used).is_v4();
  auto client = open(io, v4 ? "0.0.0.0" : "::", Answers::by_route);
  Taker asked, answered;
  server->add(id_of(5), asked);
  client->add(id_of(6), answered);
  auto question = batch_of(at(used, server->port()), id_of(5), 1, 50, 50);
  REQUIRE(client->send(question, kByRoute, answered) == UdpEndpoint::Sent::yes);
  until(io, [&] { return asked.turns > 0; });
  CHECK(asked.last.from.port() == client->port());

  auto answer = batch_of(asked.last.from, id_of(6), 3, 500, 500);
  REQUIRE(server->send(answer, asked.last.to, asked) == UdpEndpoint::Sent::yes);
  until(io, [&] { return answered.datagrams.size() == 3; });
  CHECK(answered.last.from == at(used, server->port()));
}

TEST_CASE("a datagram too large for the first hop is reported, with others or alone") {
  asio::io_context io;
  auto here = open(io, "127.0.0.1"), there = open(io, "127.0.0.1");
  Taker sender;
  DatagramBatch batch = batch_of(there->local(), id_of(1), 1, 65'508, 65'508);  // more than UDP can hold
  CHECK(here->send(batch, kByRoute, sender) == UdpEndpoint::Sent::too_large);
  CHECK(batch.bytes.empty());
  CHECK(here->segments_in_kernel());
}

TEST_CASE("a destination without a route loses the batch and nothing else") {
  asio::io_context io;
  auto here = open(io, "127.0.0.1"), there = open(io, "127.0.0.1");
  Taker sender, taker;
  there->add(id_of(1), taker);
  auto lost = batch_of(at("255.255.255.255", 9), id_of(1), 2, 100, 100);  // broadcast needs leave
  CHECK(here->send(lost, kByRoute, sender) == UdpEndpoint::Sent::refused);
  CHECK(lost.bytes.empty());
  CHECK(here->counters().refused == 1);
  auto next = batch_of(there->local(), id_of(1), 2, 100, 100);
  CHECK(here->send(next, kByRoute, sender) == UdpEndpoint::Sent::yes);
  until(io, [&] { return taker.datagrams.size() == 2; });
}

TEST_CASE("a receiver may be removed, and may even close the endpoint, at the end of its turn") {
  asio::io_context io;
  auto here = open(io, "127.0.0.1"), there = open(io, "127.0.0.1");
  Taker sender, one, two;
  there->add(id_of(1), one);
  there->add(id_of(2), two);
  const bool all = GENERATE(false, true);
  one.at_turn_end = [&] {
    there->remove(id_of(2), two);
    if (all) there.reset();
  };
  auto mixed = batch_for_both(there->local(), 1, 1, 60);
  REQUIRE(here->send(mixed, kByRoute, sender) == UdpEndpoint::Sent::yes);
  until(io, [&] { return one.turns > 0; });
  io.restart();
  io.poll();
  CHECK(two.turns == 0);
}

TEST_CASE("batches echoed between two endpoints on loopback arrive complete") {
  asio::io_context io;
  auto client = open(io, "::1"), server = open(io, "::");
  Taker asked, answered;
  server->add(id_of(1), asked);
  client->add(id_of(2), answered);
  asked.at_turn_end = [&] {
    for (Buffer& one : std::exchange(asked.datagrams, {})) {
      DatagramBatch back{.to = asked.last.from, .bytes = std::move(one)};
      back.segment_bytes = back.bytes.size();
      Id id = id_of(2);
      std::copy(id.begin(), id.end(), back.bytes.begin() + 1);
      REQUIRE(server->send(back, asked.last.to, asked) == UdpEndpoint::Sent::yes);
    }
  };
  constexpr std::size_t kBatches = 50, kCount = 45;
  for (std::size_t sent = 0; sent < kBatches; ++sent) {
    auto batch = batch_of(at("::1", server->port()), id_of(1), kCount, 1400, 1400);
    REQUIRE(client->send(batch, kByRoute, answered) == UdpEndpoint::Sent::yes);
    until(io, [&] { return answered.datagrams.size() >= (sent + 1) * kCount; });
  }
  CHECK(answered.datagrams.size() == kBatches * kCount);
  for (std::size_t i = 0; i < answered.datagrams.size(); ++i)
    REQUIRE(answered.datagrams[i].back() == std::byte(i % kCount * 7 + 1));
}

}  // namespace
}  // namespace longhaul::link::udp
