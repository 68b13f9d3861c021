// SPDX-License-Identifier: Apache-2.0
// Flows of which one half ends both sides by itself: what was sent before still arrives, and nothing is read
// for ever.
#include "linked_bench.h"
#include "proxy/flows/linked_flow.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::testing;
using modules::Probe;

TEST_CASE("a client gets what was sent before a far half ended both sides") {
  LinkedBench bench;
  bool has_ended = false;
  bench.halves.dress_far = [&](Probe& far) {
    far.lan_end = [&](Probe& self, modules::Ending) {
      self.say(modules::EndLan{});
      self.say(modules::EndStream{});
      has_ended = true;
    };
    far.stream_end = [](Probe&, modules::Ending) {};
  };
  bench.halves.dress_near = [](Probe& near) {
    near.stream_end = [](Probe& self, modules::Ending ending) {
      if (ending == modules::Ending::reset) return self.say(modules::Abort{});
      self.say(modules::EndLan{});
      self.say(modules::EndStream{});
    };
    near.lan_end = [](Probe&, modules::Ending) {};
  };
  run(bench.io, [](LinkedBench& b, const bool& far_has_ended) -> asio::awaitable<void> {
    SocketPair pair = co_await b.connected();
    const std::string last = pattern(1'000'000);
    co_await send_and_end(pair.far, last);
    co_await b.until([&] { return far_has_ended; });
    asio::steady_timer later(b.io, 50ms);  // a client that reads late
    co_await later.async_wait(asio::use_awaitable);
    const Rest rest = co_await read_all(pair.near);
    CHECK((rest.text == last));
    CHECK(rest.error == asio::error::eof);
    pair.near.close();
    co_await b.until([&] { return b.sites.near->table.live().empty() && b.sites.far->table.live().empty(); });
    CHECK(b.sites.near->table.totals().reset == 0);
    CHECK(b.sites.far->table.totals().reset == 0);
  }(bench, has_ended));
}

TEST_CASE(
    "a server gets what a client sent before its near half ended both sides, and is reset only if it sends "
    "more") {
  const bool sends_more = GENERATE(false, true);
  LinkedBench bench;
  bench.halves.dress_near = [](Probe& near) {
    near.lan_end = [](Probe& self, modules::Ending) {
      self.say(modules::EndStream{});
      self.say(modules::EndLan{});
    };
    near.stream = [](Probe& self, Slice bytes) {
      if (self.lan_endings.empty()) self.say(modules::ToLan{std::move(bytes)});
    };
    near.stream_end = [](Probe&, modules::Ending) {};
  };
  run(bench.io, [](LinkedBench& b, bool more) -> asio::awaitable<void> {
    SocketPair pair = co_await b.connected();
    const std::string last = pattern(1'000'000);
    co_await send_and_end(pair.near, last);
    const auto got = co_await read_exactly(pair.far, last.size());
    CHECK((got == last));
    if (more) co_await write(pair.far, "more");
    const Rest rest = co_await read_all(pair.far);
    CHECK(rest.error == asio::error::eof);
    if (!more) pair.far.close();
    co_await b.until([&] { return b.sites.near->table.live().empty() && b.sites.far->table.live().empty(); });
    CHECK(b.sites.near->table.totals().reset == 0);
    CHECK(b.sites.far->table.totals().reset == (more ? 1 : 0));
  }(bench, sends_more));
}

TEST_CASE("a client whose near half ended both sides gets everything though the link is lost") {
  const std::string last = pattern(100'000);  // the kernel takes all of it
  LinkedBench bench;
  bench.halves.dress_near = [&](Probe& near) {
    near.lan_end = [&](Probe& self, modules::Ending) {
      self.say(modules::ToLan{Probe::slice(last)});
      self.say(modules::EndLan{});
      self.say(modules::EndStream{});
    };
    near.stream_end = [](Probe&, modules::Ending) {};
  };
  bool far_waits = false;
  bench.halves.dress_far = [&](Probe& far) {
    far.stream_end = [&](Probe&, modules::Ending) { far_waits = true; };
  };
  run(bench.io,
      [](LinkedBench& b, const std::string& expected, const bool& is_waiting) -> asio::awaitable<void> {
        SocketPair pair = co_await b.connected();
        pair.near.shutdown(tcp::socket::shutdown_send);
        co_await b.until([&] { return is_waiting; });
        b.sites.far->links[0]->stop();
        co_await b.until([&] { return b.sites.near->table.live().empty(); });
        const Rest rest = co_await read_all(pair.near);
        CHECK((rest.text == expected));
        CHECK(rest.error == asio::error::eof);
        CHECK(b.sites.near->table.totals().reset == 0);
      }(bench, last, far_waits));
}

TEST_CASE("a server that goes on sending when both halves have ended is reset") {
  LinkedBench bench;
  bench.halves.dress_near = [](Probe& near) {
    near.lan_end = [](Probe& self, modules::Ending) {
      self.say(modules::EndStream{});
      self.say(modules::EndLan{});
    };
    near.stream_end = [](Probe&, modules::Ending) {};
  };
  bench.halves.dress_far = [](Probe& far) {
    far.lan = [](Probe& self, Slice bytes) {
      if (self.stream_endings.empty()) self.say(modules::ToStream{std::move(bytes)});
    };
    far.stream_end = [](Probe& self, modules::Ending ending) {
      if (ending == modules::Ending::reset) return self.say(modules::Abort{});
      self.say(modules::EndStream{});
      self.say(modules::EndLan{});
    };
    far.lan_end = [](Probe&, modules::Ending) {};
  };
  run(bench.io, [](LinkedBench& b) -> asio::awaitable<void> {
    SocketPair pair = co_await b.connected();
    pair.near.close();
    const Rest rest = co_await read_all(pair.far);
    CHECK(rest.error == asio::error::eof);
    co_await b.until([&] { return b.sites.near->table.live().empty(); });
    CHECK(b.sites.near->table.totals().reset == 0);
    co_await write(pair.far, pattern(1000));  // an answer to the end
    const std::string much = pattern(200'000);
    boost::system::error_code reset;  // it may come before everything is written
    co_await asio::async_write(pair.far, asio::buffer(much),
                               asio::redirect_error(asio::use_awaitable, reset));
    co_await b.until([&] { return b.sites.far->table.live().empty(); });
    CHECK(b.sites.far->table.totals().reset == 1);
  }(bench));
}
