// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/wan_side.h"

#include "linked_bench.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::testing;

namespace {

struct StreamEvents final : link::StreamUser {
  void on_stream_event(link::EventKind kind) override { kinds.push_back(kind); }
  std::vector<link::EventKind> kinds;
};

// A stream of the near side, without a client; the far side has a flow to the server.
struct WanBench : LinkedBench {
  WanBench() : LinkedBench(Reduces::yes) {}
  asio::awaitable<void> open() {
    co_await sites.link_up();
    link::PeerLink& link = *sites.near->links[0];
    link::OpenRequest request;
    request.destination.address = acceptor.local_endpoint().address();
    request.destination.port = acceptor.local_endpoint().port();
    request.features = sites.near->config.features;
    record.features = request.features;
    link::Stream& stream = link.session().open(request, link::Clock::now());
    link.give_user(stream.id(), events);
    side.emplace(link, stream, record);
    side->kick();
    tcp::socket server = co_await acceptor.async_accept(asio::use_awaitable);
    co_await until([&] { return !events.kinds.empty(); });
    side->stream()->writer().write(as_bytes("hello"));
    side->kick();
    co_await read_exactly(server, 5);
  }

  StreamEvents events;
  FlowRecord record;
  std::optional<WanSide> side;
};

}  // namespace

TEST_CASE("a flow's record keeps the counters of its stream after that is released") {
  WanBench site;
  run(site.io, [](WanBench& bench) -> asio::awaitable<void> {
    co_await bench.open();
    bench.side->count();
    CHECK(bench.record.bytes.wan_out > 5);
    CHECK(bench.record.bytes.wan_in > 0);  // the answer
    const std::uint64_t sent = bench.record.bytes.wan_out;
    bench.side->stream()->writer().write(as_bytes("more"));
    bench.side->count_everything();
    CHECK(bench.record.bytes.wan_out > sent);
    bench.side->stream()->reset(link::ResetCode::aborted);
    bench.side->release();
    CHECK(bench.side->stream() == nullptr);
    const std::uint64_t all = bench.record.bytes.wan_out;
    bench.side->count();
    bench.side->count_everything();
    bench.side->release();
    CHECK(bench.record.bytes.wan_out == all);
  }(site));
}

TEST_CASE("a private flow uses no dictionary, also when its features change later") {
  WanBench site;
  run(site.io, [](WanBench& bench) -> asio::awaitable<void> {
    co_await bench.open();
    const config::Features all = bench.side->stream()->request().features;
    REQUIRE(all.dedup_memory);
    bench.side->on_features();
    CHECK(bench.record.features.dedup_memory);
    CHECK_FALSE(bench.side->is_private());
    bench.side->keep_private();
    CHECK(bench.side->is_private());
    CHECK_FALSE(bench.record.features.dedup_memory);
    CHECK_FALSE(bench.record.features.dedup_disk);
    CHECK_FALSE(bench.side->stream()->request().features.dedup_memory);
    bench.side->stream()->use_features(all);
    bench.side->on_features();
    CHECK_FALSE(bench.record.features.dedup_memory);
    CHECK_FALSE(bench.side->stream()->request().features.dedup_memory);
    bench.side->stream()->reset(link::ResetCode::aborted);
    bench.side->release();
    bench.side->keep_private();
  }(site));
}
