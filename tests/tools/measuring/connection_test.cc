// SPDX-License-Identifier: Apache-2.0
// Console and agent on loopback: they find each other, and each way of not doing so has its sentence.
#include "tools/measuring/connection.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <functional>

#include "tools/measuring/trouble.h"

using namespace longhaul::measuring;
using namespace std::chrono_literals;
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr auto kPatience = 30s;  // for what comes; a busy machine under a sanitizer is slow

struct Outcome {
  std::string dialling = "nothing";  // what went wrong, or "well"
  std::string listening = "nothing";
};

asio::awaitable<void> speak(Connection& connection, std::string name) {
  boost::json::object message;
  message["name"] = name;
  co_await connection.send(message);
  const auto answer = co_await connection.receive(kPatience);
  (void)text(answer, "name", 10);
}

asio::awaitable<void> dial_side(Endpoint to, Identity identity, std::string& outcome) {
  try {
    Connection connection = co_await dial(to, identity, kPatience);
    co_await speak(connection, "here");
    outcome = "well";
  } catch (const Trouble& trouble) {
    outcome = trouble.what();
  }
}

asio::awaitable<void> listen_side(tcp::acceptor& acceptor, Identity identity, std::string& outcome) {
  try {
    tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
    Connection connection = co_await welcome(std::move(socket), identity, kPatience);
    co_await speak(connection, "there");
    outcome = "well";
  } catch (const Trouble& trouble) {
    outcome = trouble.what();
  }
}

Outcome meet(const Identity& dialling, const Identity& listening, const std::string& address = "127.0.0.1") {
  asio::io_context io;
  tcp::acceptor acceptor = listen(io.get_executor(), {address, 0});
  Outcome outcome;
  asio::co_spawn(io, listen_side(acceptor, listening, outcome.listening), asio::detached);
  asio::co_spawn(io, dial_side({address, acceptor.local_endpoint().port()}, dialling, outcome.dialling),
                 asio::detached);
  io.run_for(2 * kPatience);
  return outcome;
}

// One end is the test's plain socket, which sends `bytes` and, where it is told so, ends.
enum class Then { waits, ends };
asio::awaitable<void> stranger(tcp::acceptor& acceptor, std::string bytes, Then then, tcp::socket& kept) {
  kept = co_await acceptor.async_accept(asio::use_awaitable);
  co_await asio::async_write(kept, asio::buffer(bytes), asio::use_awaitable);
  if (then == Then::ends) kept.shutdown(tcp::socket::shutdown_send);
}

asio::awaitable<void> dial_once(Endpoint to, std::chrono::milliseconds patience, std::string& outcome) {
  try {
    const Identity identity{"longhaul-txn", 1};
    const Connection connection = co_await dial(to, identity, patience);
    outcome = "well";
  } catch (const Trouble& trouble) {
    outcome = trouble.what();
  }
}

std::string dial_stranger(const std::string& bytes, Then then,
                          std::chrono::milliseconds patience = kPatience) {
  asio::io_context io;
  tcp::acceptor acceptor = listen(io.get_executor(), {"127.0.0.1", 0});
  tcp::socket kept{io};
  std::string outcome = "nothing";
  asio::co_spawn(io, stranger(acceptor, bytes, then, kept), asio::detached);
  asio::co_spawn(io, dial_once({"127.0.0.1", acceptor.local_endpoint().port()}, patience, outcome),
                 asio::detached);
  io.run_for(2 * kPatience);
  return outcome;
}

}  // namespace

TEST_CASE("console and agent greet each other and exchange messages, in both families", "[measuring]") {
  for (const char* address : {"127.0.0.1", "::1"}) {
    const Outcome outcome = meet({"longhaul-txn", 1, "secret"}, {"longhaul-txn", 1, "secret"}, address);
    CHECK(outcome.dialling == "well");
    CHECK(outcome.listening == "well");
  }
}

TEST_CASE("both sides report why they cannot work together", "[measuring]") {
  const Outcome version = meet({"longhaul-txn", 1}, {"longhaul-txn", 2});
  CHECK_THAT(version.dialling,
             Catch::Contains("speaks version 2") && Catch::Contains("both ends must have the same release"));
  CHECK_THAT(version.listening, Catch::Contains("speaks version 1"));
  const Outcome token = meet({"longhaul-txn", 1, "guess"}, {"longhaul-txn", 1, "secret"});
  CHECK_THAT(token.dialling, Catch::Contains("says:") && Catch::Contains("a different token"));
  CHECK_THAT(token.listening, Catch::Contains("a different token"));
}

TEST_CASE("a closed port and a port in use are reported in a sentence", "[measuring]") {
  asio::io_context io;
  tcp::acceptor taken = listen(io.get_executor(), {"127.0.0.1", 0});
  const std::uint16_t port = taken.local_endpoint().port();
  CHECK_THROWS_WITH(listen(io.get_executor(), {"127.0.0.1", port}),
                    Catch::Contains("is in use by another program"));
  CHECK_THROWS_WITH(listen(io.get_executor(), {"198.51.100.1", 0}),
                    Catch::Contains("cannot listen at 198.51.100.1:0"));
  taken.close();
  std::string outcome;
  asio::co_spawn(io, dial_once({"127.0.0.1", port}, kPatience, outcome), asio::detached);
  io.run_for(kPatience);
  CHECK_THAT(outcome, Catch::Contains("nothing listens") && Catch::Contains("longhaul-txn agent"));
}

TEST_CASE("a peer that is another program, that ends or that stays silent is distinguished", "[measuring]") {
  CHECK_THAT(dial_stranger("220 mail.example ESMTP\r\n", Then::waits), Catch::Contains("not of this protocol"));
  CHECK_THAT(dial_stranger("", Then::ends), Catch::Contains("has closed the connection"));
  CHECK_THAT(dial_stranger("", Then::waits, 200ms),
             Catch::Contains("no message received") && Catch::Contains("for 200 ms"));
}

TEST_CASE("endpoints are parsed as people write them", "[measuring]") {
  const auto read = [](std::string_view text) { return to_text(parse_endpoint(text, 7610)); };
  CHECK(read("10.0.0.1") == "10.0.0.1:7610");
  CHECK(read("server:80") == "server:80");
  CHECK(read("fd10::2") == "[fd10::2]:7610");
  CHECK(read("[fd10::2]:80") == "[fd10::2]:80");
  CHECK(read("[::]") == "[::]:7610");
  for (const char* wrong : {"", ":80", "host:", "host:port", "host:70000", "[::1", "[::1]80", "[]:80"}) {
    INFO(wrong);
    CHECK_THROWS_AS(parse_endpoint(wrong, 1), Trouble);
  }
}
