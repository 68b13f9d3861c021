// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/handshake_turns.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>

#include "proxy/loopback.h"

using namespace longhaul;
using namespace longhaul::link;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

asio::awaitable<void> step(HandshakeTurns& turns, Standing standing, std::string name, Duration takes,
                           std::string& order) {
  co_await turns.next(standing);
  order += name;
  turns.done(takes);
}

}  // namespace

TEST_CASE("known peers go first, then first contacts, then the others, each in order of arrival") {
  asio::io_context io;
  HandshakeTurns turns(io.get_executor());
  std::string order;
  asio::co_spawn(io, step(turns, Standing::repeated, "a", 20ms, order), asio::detached);
  io.run_one();  // its coroutine begins
  for (const auto& [standing, name] :
       {std::pair{Standing::repeated, "b"}, std::pair{Standing::first, "c"}, std::pair{Standing::known, "d"},
        std::pair{Standing::known, "e"}, std::pair{Standing::first, "f"}})
    asio::co_spawn(io, step(turns, standing, name, 0ms, order), asio::detached);
  io.run();
  CHECK(order == "adecfb");
}

TEST_CASE("after each step strangers wait nine times as long as it took, and known peers do not") {
  asio::io_context io;
  HandshakeTurns turns(io.get_executor());
  std::string order;
  const auto begun = Clock::now();
  Duration known_after{};
  asio::co_spawn(io, step(turns, Standing::first, "a", 30ms, order), asio::detached);
  asio::co_spawn(io, step(turns, Standing::first, "b", 0ms, order), asio::detached);
  asio::co_spawn(
      io,
      [](HandshakeTurns& of, std::string& log, Duration& after, TimePoint since) -> asio::awaitable<void> {
        co_await of.next(Standing::known);
        after = Clock::now() - since;
        log += "k";
        of.done(0ms);
      }(turns, order, known_after, begun),
      asio::detached);
  io.run();
  CHECK((order == "akb" || order == "kab"));
  CHECK(Clock::now() - begun >= 270ms);
  CHECK(known_after < Clock::now() - begun);
}

TEST_CASE("turns can end between the expiry of their pause and its handler") {
  asio::io_context io;
  auto turns = std::make_unique<HandshakeTurns>(io.get_executor());
  asio::steady_timer ends_them(io, Clock::now());
  ends_them.async_wait([&turns](boost::system::error_code) { turns.reset(); });
  turns->done(100us);
  std::this_thread::sleep_for(2ms);  // both timers have expired, and the loop takes both together
  CHECK(io.run() == 2);
  CHECK_FALSE(turns);
}

TEST_CASE("turns can end before the loop has given the next one") {
  asio::io_context io;
  auto turns = std::make_unique<HandshakeTurns>(io.get_executor());
  std::string order;
  asio::co_spawn(
      io,
      [](HandshakeTurns& of, std::string& log) -> asio::awaitable<void> {
        co_await of.next(Standing::known);
        log += "woken";  // and takes no step: the turns are gone
      }(*turns, order),
      asio::detached);
  io.run_one();  // its coroutine waits
  turns.reset();
  io.run();
  CHECK(order == "woken");
}
