// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/flow_ending.h"

#include "lan_pair.h"
#include "linked_bench.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::testing;
using End = FlowEnding::End;

namespace {

struct NoStreamUser final : link::StreamUser {
  void on_stream_event(link::EventKind kind) override { answered |= kind == link::EventKind::answered; }
  bool answered = false;
};

// The two sides of a near flow; the far side has a flow to the server.
struct EndingBench : LinkedBench {
  asio::awaitable<void> open() {
    co_await sites.link_up();
    link::PeerLink& link = *sites.near->links[0];
    link::OpenRequest request;
    request.destination.address = acceptor.local_endpoint().address();
    request.destination.port = acceptor.local_endpoint().port();
    request.features = sites.near->config.features;
    link::Stream& stream = link.session().open(request, link::Clock::now());
    link.give_user(stream.id(), events);
    wan.emplace(link, stream, record);
    wan->kick();
    server = co_await acceptor.async_accept(asio::use_awaitable);
    co_await until([&] { return events.answered; });
    SocketPair pair = co_await socket_pair();
    client = std::move(pair.near);
    lan = std::make_unique<LanSide>(std::move(pair.far), record.bytes, user);
    lan->prepare();
    lan->up = lan->down = LanSide::Pump::running;
    ending.emplace(*lan, *wan, [this](End how) { ends.push_back(how); });
  }
  asio::awaitable<void> until_told() {
    co_await until([&] { return !ends.empty(); });
  }
  // How the connection of client or server ended.
  static asio::awaitable<error_code> end_of(tcp::socket& socket) {
    char byte = 0;
    const auto [error, size] = co_await socket.async_read_some(asio::buffer(&byte, 1), kSays);
    co_return error;
  }

  NoStreamUser events;
  LanUser user;
  FlowRecord record;
  tcp::socket client{io}, server{io};
  std::optional<WanSide> wan;
  std::unique_ptr<LanSide> lan;
  std::optional<FlowEnding> ending;
  std::vector<End> ends;
};

}  // namespace

TEST_CASE("a flow ends once, and its owner is told later, from the event loop") {
  EndingBench site;
  run(site.io, [](EndingBench& bench) -> asio::awaitable<void> {
    co_await bench.open();
    bench.wan->stream()->writer().write(as_bytes("hello"));
    CHECK_FALSE(bench.ending->is_over());
    bench.ending->finish(End::closed);
    CHECK(bench.ending->is_over());
    CHECK(bench.ends.empty());
    CHECK(bench.wan->stream() == nullptr);
    CHECK(bench.record.bytes.wan_out >= 5);  // what is still to be sent, too
    CHECK(bench.lan->up == LanSide::Pump::done);
    CHECK(bench.lan->down == LanSide::Pump::done);
    bench.ending->finish(End::reset);
    bench.ending->reset();
    co_await bench.until_told();
    const error_code end = co_await EndingBench::end_of(bench.client);
    CHECK(end == asio::error::eof);
    CHECK(bench.ends == std::vector{End::closed});
  }(site));
}

TEST_CASE("a reset reaches the client, and the server at the other end") {
  EndingBench site;
  run(site.io, [](EndingBench& bench) -> asio::awaitable<void> {
    co_await bench.open();
    bench.ending->reset();
    co_await bench.until_told();
    CHECK(bench.ends == std::vector{End::reset});
    const error_code of_client = co_await EndingBench::end_of(bench.client);
    CHECK(of_client == asio::error::connection_reset);
    const error_code of_server = co_await EndingBench::end_of(bench.server);
    CHECK(of_server == asio::error::connection_reset);
  }(site));
}

TEST_CASE("a reset after delivery comes at once if nothing waits, also when one was planned for the end") {
  EndingBench site;
  run(site.io, [](EndingBench& bench) -> asio::awaitable<void> {
    co_await bench.open();
    CHECK_FALSE(bench.ending->waits_to_reset());
    bench.ending->reset_in_the_end();
    CHECK(bench.ending->waits_to_reset());
    CHECK_FALSE(bench.ending->is_over());
    bench.ending->reset_after_delivery();
    CHECK(bench.ending->is_over());
    co_await bench.until_told();
    CHECK(bench.ends == std::vector{End::reset});
  }(site));
}

TEST_CASE("nobody is told of a flow whose client was taken back, or that is gone") {
  EndingBench site;
  run(site.io, [](EndingBench& bench) -> asio::awaitable<void> {
    co_await bench.open();
    SECTION("taken back") {
      bench.ending->leave();
      CHECK(bench.ending->is_over());
      CHECK(bench.wan->stream() == nullptr);
      bench.ending->finish(End::closed);
    }
    SECTION("gone") {
      bench.ending->finish(End::closed);
      bench.ending.reset();
      bench.lan.reset();
    }
    asio::steady_timer later(bench.io, 10ms);
    co_await later.async_wait(asio::use_awaitable);
    CHECK(bench.ends.empty());
  }(site));
}
