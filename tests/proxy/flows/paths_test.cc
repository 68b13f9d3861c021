// SPDX-License-Identifier: Apache-2.0
// Tests which path a new flow takes, and in which order the reasons count.
#include "proxy/flows/paths.h"

#include "two_sites.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::testing;

namespace {

struct PathsBench {
  PathsBench() {
    config.features = config::standard_features(modules::probe_table());
    config.peers = {{.name = "far", .networks = {*config::parse_network("10.2.0.0/16")}}};
    config.features.transport = config::Transport::tcp;
    features = config.features;
  }
  static Destination to(const char* address) {
    return {.address = asio::ip::make_address(address), .port = 80};
  }
  Decision decide(const char* server) const { return paths.decide(client, to(server)); }

  config::Config config;
  config::Features features;
  std::vector<std::unique_ptr<link::PeerLink>> links;
  FlowTable table;
  Admission admission{config, table, [](const Crowded&) {}};
  ClientLosses losses{{}, config.modules};
  UnreachableServers unreachable;
  Paths paths{config, features, links, admission, losses, unreachable};
  const asio::ip::address client = asio::ip::make_address("10.1.0.1");
};

}  // namespace

TEST_CASE("a flow to no peer's network bypasses the link") {
  PathsBench bench;
  const Decision decision = bench.decide("192.0.2.1");
  CHECK(decision.link == nullptr);
  CHECK(decision.reason == flows::reasons::no_peer_for_network);
  CHECK(decision.peer.empty());
  CHECK_FALSE(decision.refused);
}

TEST_CASE("a flow to a peer without a link knows the peer") {
  PathsBench bench;
  CHECK(bench.decide("10.2.0.1").reason == flows::reasons::link_never_up);
  CHECK(bench.decide("10.2.0.1").peer == "far");
  bench.features.transport = config::Transport::off;
  CHECK(bench.decide("10.2.0.1").reason == flows::reasons::transport_off);
  CHECK(bench.decide("192.0.2.1").reason == flows::reasons::transport_off);
}

TEST_CASE("closed flows are refused where others bypass the link, until that is lifted") {
  PathsBench bench;
  bench.config.intercept.fail = config::Fail::closed;
  CHECK(bench.decide("10.2.0.1").refused);
  CHECK_FALSE(bench.decide("192.0.2.1").refused);
  CHECK_FALSE(bench.paths.may_leave(bench.client, PathsBench::to("10.2.0.1")));
  CHECK(bench.paths.may_leave(bench.client, PathsBench::to("192.0.2.1")));
  const auto server = asio::ip::make_address("10.2.0.1");
  CHECK(bench.paths.leaves_again(bench.client, server, 80));
  bench.paths.set_closed(Closed::lifted);
  CHECK_FALSE(bench.decide("10.2.0.1").refused);
  CHECK(bench.paths.may_leave(bench.client, PathsBench::to("10.2.0.1")));
  CHECK_FALSE(bench.paths.leaves_again(bench.client, server, 80));
  bench.paths.set_closed(Closed::enforced);
  CHECK(bench.decide("10.2.0.1").refused);
}

TEST_CASE("a flow over a link that is up may still be unreachable, or beyond a limit") {
  asio::io_context io;
  TwoSites sites(io);
  run(io, [](TwoSites& s) -> asio::awaitable<void> {
    co_await s.link_up();
    Site& near = *s.near;
    FlowTable table;
    Admission admission(near.config, table, [](const Crowded&) {});
    const ClientLosses losses({}, near.config.modules);
    UnreachableServers unreachable;
    const Paths paths(near.config, near.features, near.links, admission, losses, unreachable);
    const auto client = asio::ip::make_address("10.1.0.1");
    const auto server = PathsBench::to("127.0.0.1");
    CHECK(paths.decide(client, server).link == near.links[0].get());

    near.config.limits.flows_per_source = 1;
    admission.enter({.client = {client, 40000}});
    CHECK(paths.decide(client, server).reason == flows::reasons::source_limit);
    near.config.limits.flows = 1;
    CHECK(paths.decide(client, server).reason == flows::reasons::flow_limit);
    unreachable.remember(server, flows::reasons::destination_refused, UnreachableServers::Clock::now());
    CHECK(paths.decide(client, server).reason == flows::reasons::destination_refused);
    CHECK(paths.decide(client, server).link == nullptr);

    // It has no other path, so the far side is asked again.
    near.config.intercept.fail = config::Fail::closed;
    CHECK(paths.decide(client, server).reason == flows::reasons::flow_limit);
    CHECK(paths.decide(client, server).refused);
    near.config.limits = {};
    admission.limits_changed();
    CHECK(paths.decide(client, server).link == near.links[0].get());
  }(sites));
}
