// SPDX-License-Identifier: Apache-2.0
// Flows whose server connection was made ahead: what the client and the server see if the server no longer
// wants it.
#include "linked_bench.h"
#include "proxy/flows/linked_flow.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::testing;
using modules::Probe;
using modules::Way;

namespace {

Spares& spares_of(LinkedBench& bench) { return bench.sites.far->flows.spares(); }

// A client's connection, and the server's end of the one made ahead, which its flow has taken.
asio::awaitable<SocketPair> connected_ahead(LinkedBench& bench) {
  co_await bench.sites.link_up();
  const auto server_at = bench.acceptor.local_endpoint();
  const flows::Destination to{.host = "", .address = server_at.address(), .port = server_at.port()};
  Spares::Key key{.peer = "near", .client = asio::ip::make_address("127.0.0.1"), .destination = to.to_text()};
  const auto made = spares_of(bench).counters().made, used = spares_of(bench).counters().used;
  DialRequest request{.destination = to};
  spares_of(bench).client_connected(std::move(key), std::move(request), Spares::kFarAway);
  tcp::socket server = co_await bench.acceptor.async_accept(asio::use_awaitable);
  co_await bench.until([&] { return spares_of(bench).counters().made == made + 1; });
  tcp::socket client = co_await bench.sites.connect(server_at);
  co_await bench.until([&] { return spares_of(bench).counters().used == used + 1; });
  co_return SocketPair{std::move(client), std::move(server)};
}

// A module that stays, and one that has stepped aside at both sides: then the plain pumps move the bytes.
void dress(LinkedBench& bench, bool steps_aside) {
  if (!steps_aside) return;
  const auto aside = [](Probe& self) {
    if (self.told_surroundings == 1) self.say(modules::StepAside{Way::to_stream});
  };
  bench.halves.dress_near =
      bench.halves.dress_far = [aside](Probe& probe) { probe.surroundings_changed = aside; };
}

}  // namespace

TEST_CASE("a connection that was made ahead serves its flow like any other") {
  LinkedBench bench;
  dress(bench, GENERATE(false, true));
  run(bench.io, [](LinkedBench& b) -> asio::awaitable<void> {
    SocketPair pair = co_await connected_ahead(b);
    co_await write(pair.near, "GET 1");
    const auto asked = co_await read_exactly(pair.far, 5);
    CHECK(asked == "GET 1");
    co_await write(pair.far, "200");
    const auto answered = co_await read_exactly(pair.near, 3);
    CHECK(answered == "200");
    // From here on it is a connection like others: its end is the client's.
    co_await write(pair.near, "POST");
    const auto asked_more = co_await read_exactly(pair.far, 4);
    CHECK(asked_more == "POST");
    reset(pair.far);
    const Rest rest = co_await read_all(pair.near);
    CHECK(rest.error == asio::error::connection_reset);
    CHECK(spares_of(b).counters().replaced == 0);
  }(bench));
}

TEST_CASE("what a server does not answer on a connection made ahead is asked again on a new one") {
  enum class Server : std::uint8_t { closes, resets, refuses, closes_before };
  LinkedBench bench;
  dress(bench, GENERATE(false, true));
  const Server way = GENERATE(Server::closes, Server::resets, Server::refuses, Server::closes_before);
  run(bench.io, [](LinkedBench& b, Server server) -> asio::awaitable<void> {
    SocketPair pair = co_await connected_ahead(b);
    if (server == Server::closes_before) {
      pair.far.close();
    } else {
      co_await write(pair.near, "GET 1");
      const auto asked = co_await read_exactly(pair.far, 5);
      CHECK(asked == "GET 1");
      if (server == Server::refuses) co_await write(pair.far, "408");
      server == Server::resets ? reset(pair.far) : pair.far.close();
    }
    tcp::socket again = co_await b.acceptor.async_accept(asio::use_awaitable);
    co_await write(pair.near, server == Server::closes_before ? "GET 1 POST 2" : " POST 2");
    const auto asked = co_await read_exactly(again, 12);
    CHECK(asked == "GET 1 POST 2");
    co_await write(again, "408");
    const auto answered = co_await read_exactly(pair.near, 3);
    CHECK(answered == "408");  // on a new connection it is an answer
    CHECK(spares_of(b).counters().replaced == 1);
    again.close();
    const Rest rest = co_await read_all(pair.near);
    CHECK(rest.error == asio::error::eof);
  }(bench, way));
}

TEST_CASE("what must not be sent twice goes to a new connection, after what was said before") {
  LinkedBench bench;
  dress(bench, GENERATE(false, true));
  const std::string said_first = GENERATE("", "GET 1 ");
  // Recognised by what it is, and by its size alone.
  const std::size_t content = GENERATE(5, 300'000);
  run(bench.io, [](LinkedBench& b, std::string before, std::size_t size) -> asio::awaitable<void> {
    SocketPair pair = co_await connected_ahead(b);
    if (!before.empty()) {
      co_await write(pair.near, before);
      const auto asked = co_await read_exactly(pair.far, before.size());
      CHECK(asked == before);
    }
    const std::string upload = "POST" + pattern(size);
    co_await send_and_end(pair.near, upload);
    tcp::socket again = co_await b.acceptor.async_accept(asio::use_awaitable);
    const Rest asked = co_await read_all(again);
    CHECK((asked.text == before + upload));
    CHECK(asked.error == asio::error::eof);
    const Rest ahead = co_await read_all(pair.far);
    CHECK(ahead.text.empty());
    co_await send_and_end(again, "done");
    const Rest rest = co_await read_all(pair.near);
    CHECK(rest.text == "done");
    CHECK(rest.error == asio::error::eof);
  }(bench, said_first, content));
}

TEST_CASE("a client's end is told again with its request") {
  LinkedBench bench;
  dress(bench, GENERATE(false, true));
  run(bench.io, [](LinkedBench& b) -> asio::awaitable<void> {
    SocketPair pair = co_await connected_ahead(b);
    co_await send_and_end(pair.near, "GET 1");
    const Rest first = co_await read_all(pair.far);
    CHECK(first.text == "GET 1");
    reset(pair.far);
    tcp::socket again = co_await b.acceptor.async_accept(asio::use_awaitable);
    const Rest asked = co_await read_all(again);
    CHECK(asked.text == "GET 1");
    CHECK(asked.error == asio::error::eof);
    co_await send_and_end(again, "200");
    const Rest rest = co_await read_all(pair.near);
    CHECK(rest.text == "200");
  }(bench));
}

TEST_CASE("a client that closes a connection made ahead without sending anything causes no other") {
  LinkedBench bench;
  dress(bench, GENERATE(false, true));
  run(bench.io, [](LinkedBench& b) -> asio::awaitable<void> {
    SocketPair pair = co_await connected_ahead(b);
    co_await send_and_end(pair.near, "");
    const Rest nothing = co_await read_all(pair.far);
    CHECK(nothing.text.empty());
    pair.far.close();
    const Rest rest = co_await read_all(pair.near);
    CHECK(rest.error == asio::error::eof);
    co_await b.until([&] { return b.sites.far->table.live().empty(); });
    CHECK(spares_of(b).counters().replaced == 0);
  }(bench));
}

TEST_CASE(
    "a server that has gone by the second attempt resets the client, and a client that has gone ends it") {
  LinkedBench bench;
  dress(bench, GENERATE(false, true));
  const bool is_servers = GENERATE(false, true);
  run(bench.io, [](LinkedBench& b, bool server_goes) -> asio::awaitable<void> {
    SocketPair pair = co_await connected_ahead(b);
    co_await write(pair.near, "GET 1");
    const auto asked = co_await read_exactly(pair.far, 5);
    CHECK(asked == "GET 1");
    if (server_goes) b.acceptor.close();
    reset(pair.far);
    if (!server_goes) reset(pair.near);
    if (server_goes) {
      const Rest rest = co_await read_all(pair.near);
      CHECK(rest.error == asio::error::connection_reset);
    }
    co_await b.until([&] { return b.sites.far->table.live().empty() && b.sites.near->table.live().empty(); });
  }(bench, is_servers));
}

TEST_CASE("a module that wants another connection to the server gets one, also while the first is replaced") {
  LinkedBench bench;
  const bool is_during = GENERATE(false, true);
  bench.halves.dress_far = [](Probe& far) {
    far.stream = [](Probe& self, Slice bytes) {
      if (Probe::text(bytes) != "GET 2") return self.say(modules::ToLan{std::move(bytes)});
      self.say(modules::Redial{});
      self.say(modules::ToLan{Probe::slice("MODULE")});
    };
  };
  run(bench.io, [](LinkedBench& b, bool during) -> asio::awaitable<void> {
    SocketPair pair = co_await connected_ahead(b);
    co_await write(pair.near, "GET 1");
    const auto asked = co_await read_exactly(pair.far, 5);
    CHECK(asked == "GET 1");
    if (during) reset(pair.far);
    co_await write(pair.near, "GET 2");
    tcp::socket again = co_await b.acceptor.async_accept(asio::use_awaitable);
    std::string heard = co_await read_exactly(again, 5);
    if (heard == "GET 1") {  // the replacement was ready first
      again = co_await b.acceptor.async_accept(asio::use_awaitable);
      heard = co_await read_exactly(again, 5);
    }
    CHECK(heard == "MODUL");
    co_await write(again, "200");
    const auto answered = co_await read_exactly(pair.near, 3);
    CHECK(answered == "200");
  }(bench, is_during));
}
