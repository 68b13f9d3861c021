// SPDX-License-Identifier: Apache-2.0
// Flows between sockets, over a real link, whose bytes go through modules: as a client and a server see them.
#include "proxy/flows/linked_flow.h"

#include "linked_bench.h"
#include "proxy/modules/smb/reasons.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::testing;
using modules::Probe;
using modules::Way;

namespace {

std::uint8_t in_force(const Probe* probe, std::string_view feature) {
  return probe->surroundings.features.modules.value(feature);
}

asio::awaitable<void> exchange(SocketPair& pair, std::size_t up_bytes, std::size_t down_bytes) {
  const std::string up = pattern(up_bytes, 1), down = pattern(down_bytes, 2);
  auto [at_server, at_client, sent_up, sent_down] =
      co_await (read_all(pair.far) && read_all(pair.near) && send_and_end(pair.near, up) &&
                send_and_end(pair.far, down));
  CHECK((at_server.text == up));
  CHECK((at_client.text == down));
  CHECK(at_server.error == asio::error::eof);
  CHECK(at_client.error == asio::error::eof);
}

}  // namespace

TEST_CASE("a module that forwards everything is invisible to client and server") {
  const Reduces reduces = GENERATE(Reduces::no, Reduces::yes);
  LinkedBench bench(reduces);
  run(bench.io, [](LinkedBench& b) -> asio::awaitable<void> {
    SocketPair pair = co_await b.connected();
    CHECK(b.near_flow().module != nullptr);
    CHECK(b.far_flow().module->name == "probe");
    co_await exchange(pair, 3'000'003, 4'000'001);
    co_await b.until([&] { return b.sites.near->table.live().empty(); });
    CHECK(b.sites.near->table.totals().reset == 0);
    CHECK(b.sites.near->table.ended().back().record.bytes.lan_in == 3'000'003);
    CHECK(b.sites.near->table.ended().back().record.bytes.lan_out == 4'000'002);
    CHECK(b.sites.near->table.by_module_so_far().at({"far", "probe"}).flows == 1);
  }(bench));
}

TEST_CASE("a half-close crosses a module, and the other direction continues") {
  LinkedBench bench;
  run(bench.io, [](LinkedBench& b) -> asio::awaitable<void> {
    SocketPair pair = co_await b.connected();
    co_await send_and_end(pair.near, "question");
    const auto got_1 = co_await read_all(pair.far);
    CHECK(got_1.text == "question");
    co_await write(pair.far, "an");
    const auto got_2 = co_await read_exactly(pair.near, 2);
    CHECK(got_2 == "an");
    co_await send_and_end(pair.far, "swer");
    const Rest rest = co_await read_all(pair.near);
    CHECK(rest.text == "swer");
    CHECK(rest.error == asio::error::eof);
  }(bench));
}

TEST_CASE("a reset crosses a module behind the data sent before it, in both directions") {
  LinkedBench bench;
  run(bench.io, [](LinkedBench& b) -> asio::awaitable<void> {
    {
      SocketPair pair = co_await b.connected();
      co_await write(pair.near, "last words");
      const auto got_3 = co_await read_exactly(pair.far, 10);
      CHECK(got_3 == "last words");
      reset(pair.near);
      const auto got_4 = co_await read_all(pair.far);
      CHECK(got_4.error == asio::error::connection_reset);
    }
    SocketPair pair = co_await b.connected();
    co_await write(pair.far, "last words");
    const auto got_5 = co_await read_exactly(pair.near, 10);
    CHECK(got_5 == "last words");
    reset(pair.far);
    const auto got_6 = co_await read_all(pair.near);
    CHECK(got_6.error == asio::error::connection_reset);
  }(bench));
}

TEST_CASE("when a client closes, the server gets all promised data before its end") {
  LinkedBench bench;
  bench.halves.dress_far = [](Probe& far) {
    // The end is owed until the server has answered.
    far.stream_end = [](Probe&, modules::Ending) {};
    far.lan = [](Probe& self, Slice bytes) {
      if (self.stream_endings.empty()) return self.say(modules::ToStream{std::move(bytes)});
      self.say(modules::EndLan{});
    };
  };
  run(bench.io, [](LinkedBench& b) -> asio::awaitable<void> {
    SocketPair pair = co_await b.connected();
    const std::string promised = pattern(1'000'000);
    co_await write(pair.near, promised);
    pair.near.close();
    const auto got_7 = co_await read_exactly(pair.far, promised.size());
    CHECK((got_7 == promised));
    co_await b.until([&] { return !b.halves.far->stream_endings.empty(); });
    co_await write(pair.far, "written");
    const Rest rest = co_await read_all(pair.far);
    CHECK(rest.error == asio::error::eof);
  }(bench));
}

TEST_CASE("after a module has stepped aside it is destroyed, and the flow continues without it") {
  LinkedBench bench;
  bench.halves.dress_near = [](Probe& near) {
    near.lan = [](Probe& self, Slice bytes) {
      self.say(modules::ToStream{std::move(bytes)});
      self.say(modules::StepAside{Way::to_stream, smb::reasons::smb_signed});
      self.say(modules::ToTwin{Probe::slice("you, too")});
    };
  };
  bench.halves.dress_far = [](Probe& far) {
    far.twin = [](Probe& self, Slice) {
      self.count.round_trips_saved = 7;
      self.say(modules::StepAside{Way::to_stream});
    };
  };
  run(bench.io, [](LinkedBench& b) -> asio::awaitable<void> {
    SocketPair pair = co_await b.connected();
    co_await write(pair.near, "x");
    const auto got_8 = co_await read_exactly(pair.far, 1);
    CHECK(got_8 == "x");
    co_await write(pair.far, "y");
    const auto got_9 = co_await read_exactly(pair.near, 1);
    CHECK(got_9 == "y");
    co_await b.until([&] { return b.near_flow().module->steps_aside && b.far_flow().module->steps_aside; });
    CHECK(b.near_flow().reason == smb::reasons::smb_signed);
    CHECK(b.far_flow().module->counters.round_trips_saved == 7);
    co_await exchange(pair, 2'000'000, 3'000'000);
    co_await b.until([&] { return b.sites.near->table.live().empty(); });
    CHECK(b.sites.near->table.totals().reset == 0);
  }(bench));
}

TEST_CASE("either both halves run or neither does") {
  SECTION("the peer has another version") {
    LinkedBench bench(Reduces::no, 2);
    run(bench.io, [](LinkedBench& b) -> asio::awaitable<void> {
      SocketPair pair = co_await b.connected();
      CHECK(b.near_flow().reason == reasons::module_not_at_peer);
      CHECK(b.near_flow().module == nullptr);
      CHECK(b.far_flow().module == nullptr);
      const auto unlike = b.sites.near->links[0]->status().unlike_modules;
      REQUIRE(unlike.size() == 1);
      CHECK((unlike[0].name == "probe" && unlike[0].here == 1 && unlike[0].there == 2));
      co_await exchange(pair, 10, 20);
    }(bench));
  }
  SECTION("the peer has neither the module nor a name for its features, as an earlier release") {
    LinkedBench bench(Reduces::no, 2);
    bench.sites.far->shared.allowed.modules = config::ModuleFeatures();
    run(bench.io, [](LinkedBench& b) -> asio::awaitable<void> {
      SocketPair pair = co_await b.connected();
      CHECK(b.near_flow().reason == reasons::module_not_at_peer);
      CHECK(b.near_flow().features.modules.value("probe") == 0);
      CHECK(b.near_flow().module == nullptr);
      co_await exchange(pair, 10, 20);
    }(bench));
  }
  SECTION("the feature is off on one side") {
    LinkedBench bench;
    bench.sites.far->shared.allowed.modules.set("probe", 0);
    run(bench.io, [](LinkedBench& b) -> asio::awaitable<void> {
      co_await b.sites.link_up();
      co_await b.until([&] {
        return b.sites.near->links[0]->session().incoming().peer_allowed().modules.value("probe") == 0;
      });
      SocketPair pair = co_await b.connected();
      CHECK(b.near_flow().reason == reasons::optimised);
      CHECK(b.near_flow().module == nullptr);
      CHECK(b.far_flow().module == nullptr);
      CHECK(b.halves.near == nullptr);
    }(bench));
  }
  SECTION("the flow is for another port") {
    LinkedBench bench;
    run(bench.io, [](LinkedBench& b) -> asio::awaitable<void> {
      b.ports[0] ^= 1;
      SocketPair pair = co_await b.connected();
      CHECK(b.near_flow().module == nullptr);
      CHECK(b.far_flow().module == nullptr);
    }(bench));
  }
}

TEST_CASE("features that change during a flow are reported to both halves") {
  LinkedBench bench;
  run(bench.io, [](LinkedBench& b) -> asio::awaitable<void> {
    SocketPair pair = co_await b.connected();
    co_await write(pair.near, "x");
    const auto got_10 = co_await read_exactly(pair.far, 1);
    CHECK(got_10 == "x");
    b.sites.near->features.modules.set("probe.behind", 0);
    b.sites.near->flows.apply_features();
    co_await b.until([&] { return in_force(b.halves.near, "probe.behind") == 0; });
    CHECK(in_force(b.halves.near, "probe.ahead") == 1);
    co_await b.until([&] { return in_force(b.halves.far, "probe.behind") == 0; });
    CHECK(b.far_flow().features.modules.value("probe.behind") == 0);
    b.sites.near->features.modules.set("probe", 0);
    b.sites.near->flows.apply_features();
    co_await b.until([&] { return in_force(b.halves.near, "probe.ahead") == 0; });
    co_await b.until([&] { return in_force(b.halves.far, "probe.ahead") == 0; });
  }(bench));
}

TEST_CASE("a far half has the server connected again, and what the first connection said or was owed is gone") {
  const bool loses_first = GENERATE(false, true);
  const bool leaves = GENERATE(false, true);
  CAPTURE(loses_first, leaves);
  LinkedBench bench;
  const auto again = [leaves](Probe& self) {
    self.say(modules::ToLan{Probe::slice("owed to the first")});
    self.say(modules::Redial{});
    if (leaves) self.say(modules::StepAside{Way::to_stream});
    self.say(modules::ToLan{Probe::slice("second hello")});
  };
  bench.halves.dress_near = [leaves](Probe& near) {
    if (leaves) near.twin_aside = [](Probe& self) {
        self.say(modules::StepAside{Way::to_stream});
        self.say(modules::StepAside{Way::to_lan});
      };
  };
  bench.halves.dress_far = [&](Probe& far) {
    bool first = true;
    far.stream = [](Probe& self, Slice bytes) { self.say(modules::ToLan{std::move(bytes)}); };
    far.lan = [=](Probe& self, Slice bytes) mutable {
      if (Probe::text(bytes) != "again" || !std::exchange(first, false)) return self.say(modules::ToStream{std::move(bytes)});
      again(self);
    };
    far.lan_end = [=](Probe& self, modules::Ending ending) mutable {
      if (loses_first && std::exchange(first, false)) return again(self);
      ending == modules::Ending::closed ? self.say(modules::EndStream{}) : self.say(modules::Abort{});
    };
  };
  run(bench.io, [](LinkedBench& b, bool loses) -> asio::awaitable<void> {
    SocketPair pair = co_await b.connected();
    if (loses) {
      pair.far.set_option(asio::socket_base::linger(true, 0));
      pair.far.close();
    } else {
      co_await write(pair.far, "again");
    }
    tcp::socket second = co_await b.acceptor.async_accept(asio::use_awaitable);
    const auto hello = co_await read_exactly(second, 12);
    CHECK(hello == "second hello");
    if (!loses) {
      const auto end = co_await read_all(pair.far);
      CHECK(end.text.empty());
      CHECK(end.error == asio::error::connection_reset);
    }
    SocketPair now{std::move(pair.near), std::move(second)};
    co_await exchange(now, 1'000'003, 2'000'001);
    co_await b.until([&] { return b.sites.far->table.live().empty(); });
    CHECK(b.sites.far->table.totals().reset == 0);
  }(bench, loses_first));
}

TEST_CASE("a server that is not reached again resets the flow") {
  LinkedBench bench;
  bench.halves.dress_far = [&](Probe& far) {
    far.lan = [&](Probe& self, Slice bytes) {
      if (Probe::text(bytes) != "again") return self.say(modules::ToStream{std::move(bytes)});
      bench.acceptor.close();
      self.say(modules::Redial{});
    };
  };
  run(bench.io, [](LinkedBench& b) -> asio::awaitable<void> {
    SocketPair pair = co_await b.connected();
    co_await write(pair.far, "again");
    const auto end = co_await read_all(pair.near);
    CHECK(end.text.empty());
    CHECK(end.error == asio::error::connection_reset);
    co_await b.until([&] { return b.sites.far->table.live().empty(); });
    CHECK(b.sites.far->table.ended().back().record.reset_by == ResetBy::server);
  }(bench));
}

TEST_CASE("a half's deadline wakes it even if nothing else happens") {
  LinkedBench bench;
  bench.halves.dress_far = [](Probe& far) {
    far.lan = [](Probe& self, Slice bytes) {
      self.say(modules::ToStream{std::move(bytes)});
      self.deadline = self.now + 30ms;
    };
    far.time = [](Probe& self) { self.say(modules::ToStream{Probe::slice("tick")}); };
  };
  run(bench.io, [](LinkedBench& b) -> asio::awaitable<void> {
    SocketPair pair = co_await b.connected();
    const auto got_11 = co_await read_exactly(pair.near, 4);
    CHECK(got_11 == "tick");
  }(bench));
}

// Hidden: for a look at what a module costs. Times with nothing, with one that passes, with one that has
// stepped aside.
// Its near half answers everything itself.
TEST_CASE("a module answers its client before the far side has reached the server") {
  LinkedBench bench;
  bench.halves.dress_near = [](Probe& near) {
    near.lan = [](Probe& self, Slice) { self.say(modules::ToLan{Probe::slice("own answer")}); };
  };
  run(bench.io, [](LinkedBench& b) -> asio::awaitable<void> {
    co_await b.sites.link_up();
    const tcp::endpoint server = b.acceptor.local_endpoint();
    // The client has said something when its flow begins.
    const auto begin = [&](std::function<std::string(ConnectOutcome)> reply) -> asio::awaitable<tcp::socket> {
      SocketPair pair = co_await socket_pair();
      co_await write(pair.near, "question");
      flows::Accepted accepted{.socket = std::move(pair.far),
                               .client = pair.near.local_endpoint(),
                               .destination = {.host = "", .address = server.address(), .port = server.port()},
                               .answer = std::move(reply)};
      b.sites.near->flows.start(std::move(accepted));
      co_return std::move(pair.near);
    };
    // A server that is reached later, or never: the kernel drops what asks for a place in a full backlog.
    b.acceptor.listen(0);
    tcp::socket first(b.io);
    co_await first.async_connect(server, asio::use_awaitable);
    tcp::socket waits = co_await begin({});
    const auto got_1 = co_await read_exactly(waits, 10);
    CHECK(got_1 == "own answer");
    CHECK(b.near_flow().bytes.lan_out == 10);

    // A SOCKS client hears first that the server was reached.
    tcp::socket asks = co_await begin([](ConnectOutcome) { return std::string("reached: "); });
    asio::steady_timer soon(b.io, 50ms);
    co_await soon.async_wait(asio::use_awaitable);
    CHECK(asks.available() == 0);

    // One that refuses: the answer, and then the reset.
    b.acceptor.close();
    tcp::socket refused = co_await begin({});
    const auto got_2 = co_await read_all(refused);
    CHECK(got_2.text == "own answer");
    CHECK(got_2.error == asio::error::connection_reset);
  }(bench));
}

TEST_CASE("throughput of flows with and without a module", "[.speed]") {
  const int kind = GENERATE(0, 1, 2, 0, 1, 2, 0, 1, 2);
  LinkedBench bench;
  if (kind == 0) bench.ports[0] = 1;
  if (kind == 2) {
    bench.halves.dress_near = bench.halves.dress_far = [](Probe& half) {
      half.surroundings_changed = [](Probe& self) {
        if (self.told_surroundings == 1) self.say(modules::StepAside{Way::to_stream});
      };
    };
  }
  run(bench.io, [](LinkedBench& b, int which) -> asio::awaitable<void> {
    constexpr std::size_t kBytes = 1 << 28;
    SocketPair pair = co_await b.connected();
    const auto start = std::chrono::steady_clock::now();
    const auto send = [](tcp::socket& socket) -> asio::awaitable<void> {
      const std::string block = pattern(1 << 20);
      for (std::size_t sent = 0; sent < kBytes; sent += block.size())
        co_await asio::async_write(socket, asio::buffer(block), asio::use_awaitable);
      socket.shutdown(tcp::socket::shutdown_send);
    };
    const auto receive = [](tcp::socket& socket) -> asio::awaitable<std::size_t> {
      std::string buffer(1 << 20, '\0');
      for (std::size_t received = 0;;) {
        const auto [error, size] = co_await socket.async_read_some(asio::buffer(buffer), kSays);
        received += size;
        if (error) co_return received;
      }
    };
    const auto received = co_await (send(pair.far) && receive(pair.near));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    CHECK(received == kBytes);
    WARN((which == 0   ? "without a module: "
          : which == 1 ? "passes all:       "
                       : "stepped aside:    ")
         << static_cast<double>(kBytes) / took.count() / 1e6 << " MB/s");
  }(bench, kind));
}
