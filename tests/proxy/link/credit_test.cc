// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/credit.h"

#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "tests/proxy/link/start.h"

using namespace longhaul::link;
using namespace std::chrono_literals;

namespace {

// A sender and a receiver of one stream with a wire between them that may be slow: frames and bytes arrive
// when the test says so, frames in order.
struct Joined {
  Joined(CreditPool& pool, std::uint64_t initial, std::uint64_t fixed_window = 0)
      : receiver(pool, session, initial, fixed_window), sender(receiver.announced_limit()) {}

  void announce() { to_sender.emplace_back(receiver.generation(), receiver.announced_limit()); }
  void deliver_credit() {
    while (!to_sender.empty()) {
      auto [generation, limit] = to_sender.front();
      to_sender.pop_front();
      if (sender.on_credit(generation, limit).tell_returned)
        to_receiver.emplace_back(sender.generation(), sender.limit());
    }
  }
  void deliver_returns(TimePoint now) {
    while (!to_receiver.empty()) {
      auto [generation, limit] = to_receiver.front();
      to_receiver.pop_front();
      if (receiver.on_returned(generation, limit, now, 20ms)) announce();
    }
  }
  void send(std::uint64_t bytes) {
    sender.on_sent(bytes);
    on_their_way += bytes;
  }
  void deliver_bytes(TimePoint now) {
    REQUIRE(receiver.on_received(on_their_way, now));
    unread += on_their_way;
    on_their_way = 0;
  }
  void read(std::uint64_t bytes, TimePoint now) {
    unread -= bytes;
    if (receiver.on_consumed(bytes, now, 20ms)) announce();
  }

  SessionCredit session;
  ReceiveCredit receiver;
  SendCredit sender;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> to_sender, to_receiver;
  std::uint64_t on_their_way = 0, unread = 0;
};

// Takes memory away, so that the pool is under pressure.
struct Hog {
  Hog(CreditPool& from, std::uint64_t bytes) : pool(from), taken(std::min(bytes, from.free_bytes())) {
    pool.take(taken);
  }
  ~Hog() { pool.give(taken); }
  CreditPool& pool;
  std::uint64_t taken;
};

}  // namespace

TEST_CASE("a window that is drained at full speed doubles each round trip") {
  CreditPool pool(256 << 20, 16);
  Joined joined(pool, 64 * 1024);
  TimePoint now = kStart;
  std::uint64_t window = 0;
  for (int round = 0; round < 8; ++round, now += 20ms) {
    window = joined.sender.available();
    joined.send(window);
    joined.deliver_bytes(now);
    joined.read(joined.unread, now);
    joined.deliver_credit();
  }
  CHECK(window >= 64 * 1024 * 64);
}

TEST_CASE("a window drained at once has grown when the sender learns of it, and at most once a round trip") {
  CreditPool pool(512 << 20, 16);
  constexpr std::uint64_t kWindow = 16 << 20;
  Joined joined(pool, kWindow);
  joined.send(kWindow);
  joined.deliver_bytes(kStart);
  for (int piece = 1; piece <= 16; ++piece) joined.read(1 << 20, kStart + piece * 100us);
  joined.deliver_credit();
  CHECK(joined.sender.available() > 2 * kWindow - kWindow / 4);
  CHECK(joined.sender.available() <= 2 * kWindow);
}

TEST_CASE("a window doubles with each burst, wherever the round trip ends within a burst") {
  for (const auto apart : {17ms, 18ms, 19ms, 20ms, 21ms}) {
    INFO("a burst each " << apart.count() << " ms");
    CreditPool pool(std::uint64_t{2} << 30, 16);
    Joined joined(pool, 16 << 20);
    std::uint64_t sent = 0;
    for (int burst = 0; burst < 4; ++burst) {
      const std::uint64_t window = joined.sender.available();
      sent += window;
      joined.send(window);
      joined.deliver_bytes(kStart + burst * apart);
      for (int piece = 1; piece <= 16; ++piece)
        joined.read(piece < 16 ? window / 16 : joined.unread, kStart + burst * apart + piece * 250us);
      joined.deliver_credit();
    }
    // 16, 32, 64 and 128 MiB but for what is told late; a burst that is cut would double nothing.
    CHECK(sent > std::uint64_t{200} << 20);
  }
}

TEST_CASE("a window covers the round trip and the time that bytes wait for a gap to close") {
  for (Duration stall : {0ms, 80ms}) {
    CreditPool pool(256 << 20, 16);
    Joined stream(pool, 100'000);
    TimePoint now = kStart;
    // The whole window comes into order at once, when a repair has come, and is read; so a window each 100
    // ms.
    for (int i = 0; i < 20; ++i) {
      stream.send(stream.sender.available());
      stream.deliver_bytes(now += 100ms);
      if (stall > 0ms) stream.receiver.on_stall(stall);
      stream.read(stream.unread, now);
      stream.deliver_credit();
    }
    if (stall > 0ms)
      CHECK(stream.receiver.outstanding() > 10'000'000);
    else
      CHECK(stream.receiver.outstanding() <= 200'000);
  }
}

TEST_CASE("a reader that stops gets no new credit, and gets it when it continues") {
  CreditPool pool(64 << 20, 16);
  Joined joined(pool, 100'000);
  joined.send(100'000);
  joined.deliver_bytes(kStart);
  CHECK(joined.to_sender.empty());
  CHECK(joined.sender.available() == 0);
  joined.read(100'000, kStart + 1s);
  joined.deliver_credit();
  CHECK(joined.sender.available() > 0);
}

TEST_CASE("sending more than the credit is an error, to the byte") {
  CreditPool pool(64 << 20, 16);
  SessionCredit session;
  ReceiveCredit credit(pool, session, 1000, 0);
  REQUIRE(credit.on_received(1000, kStart));
  auto taken = credit.on_received(1, kStart);
  REQUIRE_FALSE(taken);
  CHECK(taken.error() == LinkError::credit_exceeded);
}

TEST_CASE("a fixed window is never exceeded, however large the memory") {
  CreditPool pool(256 << 20, 16);
  Joined joined(pool, ReceiveCredit::initial_grant(pool, 65'535), 65'535);
  for (int i = 0; i < 200; ++i) {
    TimePoint now = kStart + i * 10ms;
    CHECK(joined.sender.available() <= 65'535);
    joined.send(joined.sender.available());
    joined.deliver_bytes(now);
    joined.read(joined.unread, now);
    joined.deliver_credit();
  }
}

TEST_CASE("a stream drained while its credit was requested back gets new credit") {
  CreditPool pool(4 << 20, 16);
  Joined joined(pool, 400'000);
  joined.send(200'000);
  joined.deliver_bytes(kStart);
  Hog hog(pool, pool.free_bytes() - 100'000);
  REQUIRE(joined.receiver.reclaim(kStart + 5s));
  joined.announce();
  // The reader takes everything before the sender has answered.
  joined.read(200'000, kStart + 5s);
  joined.deliver_credit();
  joined.deliver_returns(kStart + 5s);
  joined.deliver_credit();
  CHECK(joined.sender.available() > 0);
}

TEST_CASE("a request for credit back is answered although the sender never knew of the credit") {
  CreditPool pool(4 << 20, 16);
  Joined joined(pool, 100'000);
  joined.send(100'000);
  joined.deliver_bytes(kStart);
  joined.read(100'000, kStart + 20ms);
  REQUIRE(joined.receiver.outstanding() > pool.floor_bytes());
  joined.to_sender.clear();  // the carrier was down, and only the latest limit was sent afterwards
  Hog hog(pool, pool.free_bytes());
  REQUIRE(joined.receiver.reclaim(kStart + 5s));
  joined.announce();
  joined.deliver_credit();
  CHECK(joined.to_receiver.size() == 1);
  joined.deliver_returns(kStart + 5s);
  joined.deliver_credit();
  // It can go on when it has used all of it.
  for (int round = 0; round < 3; ++round) {
    REQUIRE(joined.sender.available() > 0);
    joined.send(joined.sender.available());
    joined.deliver_bytes(kStart + 6s);
    joined.read(joined.unread, kStart + 6s);
    joined.deliver_credit();
    joined.deliver_returns(kStart + 6s);
    joined.deliver_credit();
  }
  CHECK(joined.sender.available() > 0);
}

TEST_CASE("credit that was used before its return was requested stays valid") {
  CreditPool pool(4 << 20, 16);
  Joined joined(pool, 400'000);
  Hog hog(pool, pool.free_bytes());
  REQUIRE(joined.receiver.reclaim(kStart + 5s));
  joined.announce();
  joined.send(400'000);
  joined.deliver_credit();
  joined.deliver_returns(kStart + 5s);
  joined.deliver_bytes(kStart + 5s);  // would be an error if the limit had fallen below what was sent
  CHECK(joined.receiver.outstanding() == 400'000);
}

TEST_CASE("a false credit return changes nothing beyond the request") {
  CreditPool pool(4 << 20, 16);
  SessionCredit session;
  ReceiveCredit credit(pool, session, 400'000, 0);
  std::uint64_t free_before = pool.free_bytes();
  credit.on_returned(0, 0, kStart, 20ms);  // nothing was asked
  CHECK(pool.free_bytes() == free_before);
  Hog hog(pool, pool.free_bytes());
  REQUIRE(credit.reclaim(kStart + 5s));
  credit.on_returned(credit.generation() + 1, 0, kStart, 20ms);
  CHECK(credit.outstanding() == 400'000);
  credit.on_returned(credit.generation(), 0, kStart, 20ms);
  CHECK(credit.outstanding() >= pool.floor_bytes());
}

TEST_CASE("a finished stream holds only the bytes that its reader has not taken") {
  CreditPool pool(64 << 20, 16);
  std::uint64_t all = pool.free_bytes();
  SessionCredit session;
  auto credit = std::make_unique<ReceiveCredit>(pool, session, 1 << 20, 0);
  REQUIRE(credit->on_received(300'000, kStart));
  credit->finish();
  CHECK(all - pool.free_bytes() <= 300'000);
  CHECK_FALSE(credit->on_consumed(300'000, kStart, 20ms));
  CHECK(pool.free_bytes() == all);
  credit.reset();
  CHECK(pool.free_bytes() == all);
}

TEST_CASE("in any order of events the pool is exact, credit is kept, and nothing stalls") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 random(seed);
    CreditPool pool(2 << 20, 16);
    std::uint64_t all = pool.free_bytes();
    std::vector<std::unique_ptr<Joined>> streams;
    TimePoint now = kStart;
    for (int step = 0; step < 3000; ++step) {
      now += std::chrono::milliseconds(random() % 200);
      if (streams.size() < 16 && random() % 50 == 0)
        streams.push_back(std::make_unique<Joined>(pool, ReceiveCredit::initial_grant(pool, 0)));
      if (streams.empty()) continue;
      Joined& s = *streams[random() % streams.size()];
      switch (random() % 8) {
        case 0:
        case 1:
          s.send(random() % (s.sender.available() + 1));
          break;
        case 2:
          s.deliver_bytes(now);
          break;
        case 3:
          s.read(random() % (s.unread + 1), now);
          break;
        case 4:
          s.deliver_credit();
          break;
        case 5:
          s.deliver_returns(now);
          break;
        case 6:
          if (pool.under_pressure() && s.receiver.reclaim(now)) s.announce();
          break;
        default:
          if (random() % 40 == 0) std::erase_if(streams, [&](const auto& p) { return p.get() == &s; });
      }
      std::uint64_t above_floors = 0;
      for (const auto& stream : streams) {
        std::uint64_t held = stream->receiver.outstanding();
        above_floors += held > pool.floor_bytes() ? held - pool.floor_bytes() : 0;
        // What the sender may still send is never more than what is set aside for it.
        CHECK(stream->sender.available() + stream->on_their_way + stream->unread <= held);
      }
      INFO("seed " << seed << ", step " << step);
      REQUIRE(above_floors == all - pool.free_bytes());
    }
    // Everything is delivered and read: then each sender may send something.
    for (int round = 0; round < 4; ++round)
      for (auto& stream : streams) {
        now += 10ms;
        stream->deliver_credit();
        stream->deliver_returns(now);
        stream->deliver_bytes(now);
        if (stream->unread) stream->read(stream->unread, now);
        stream->deliver_credit();
      }
    INFO("seed " << seed);
    for (auto& stream : streams) CHECK(stream->sender.available() > 0);
  }
}
