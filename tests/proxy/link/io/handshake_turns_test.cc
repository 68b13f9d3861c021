// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/handshake_turns.h"

#include <catch2/catch.hpp>
#include <string>

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
