// SPDX-License-Identifier: Apache-2.0
// A link with many flows is lost, or its session ends: how many flows have their turn in one turn of the
// loop.
#include "two_sites.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::testing;

namespace {

constexpr std::size_t kMany = 150, kMostInOneTurn = 80;

struct ManyFlows {
  ManyFlows() : acceptor(io, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)), sites(io) {}

  asio::awaitable<void> begin() {
    co_await sites.link_up();
    for (std::size_t i = 0; i < kMany; ++i) {
      clients.push_back(co_await sites.connect(acceptor.local_endpoint()));
      servers.push_back(co_await acceptor.async_accept(asio::use_awaitable));
      // The near side has its answer then.
      co_await write(servers.back(), "!");
      co_await read_exactly(clients.back(), 1);
    }
  }
  // Runs the loop until it is so; answers how many streams of the near session went in its busiest turn.
  std::size_t most_ended_until(const std::function<bool()>& done) {
    const auto live = [this] {
      const link::Session* session = sites.near->links[0]->session_if_any();
      return session ? session->state().live_streams : 0;
    };
    std::size_t most = 0;
    while (!done()) {
      const std::size_t before = live();
      io.run_one();
      most = std::max(most, before - std::min(before, live()));
    }
    return most;
  }

  asio::io_context io;
  tcp::acceptor acceptor;
  TwoSites sites;
  std::vector<tcp::socket> clients, servers;
};

}  // namespace

TEST_CASE("the flows of an ended session are reset in portions, and the next session begins afterwards") {
  ManyFlows many;
  run(many.io, many.begin());
  Site& near = *many.sites.near;
  REQUIRE(near.table.live().size() == kMany);
  config::Peer revoked = near.config.peers[0];
  revoked.fingerprints = {"SHA256:another"};
  near.links[0]->update(revoked);
  CHECK_FALSE(near.links[0]->usable());
  near.links[0]->update(near.config.peers[0]);
  many.io.restart();
  CHECK(many.most_ended_until([&] { return near.table.live().empty(); }) <= kMostInOneTurn);
  CHECK(near.table.totals().reset == kMany);
  many.most_ended_until([&] { return near.links[0]->usable(); });
}

TEST_CASE("the flows of a lost link are examined in portions") {
  ManyFlows many;
  run(many.io, many.begin());
  Site& far = *many.sites.far;
  REQUIRE(far.table.live().size() == kMany);
  far.flows.on_peer_gone(*far.links[0]);
  bool settled = false;
  far.flows.on_doubt_settled = [&] { settled = true; };
  many.io.restart();
  many.most_ended_until([&] { return settled; });
  CHECK(far.flows.sweeps().visits == kMany);
  CHECK(far.flows.sweeps().most_visits <= kMostInOneTurn);
  CHECK(far.table.live().size() == kMany);
}

TEST_CASE("changed features reach the flows of a link some at a time") {
  ManyFlows many;
  run(many.io, many.begin());
  Site& near = *many.sites.near;
  near.features.compression = false;
  const auto changed = [&] {
    return std::ranges::count_if(near.table.live(),
                                 [](const auto& each) { return !each.second.features.compression; });
  };
  near.flows.apply_features();
  near.flows.apply_features(near.links[0].get());
  // The second change of the same kind waits for its turn, and a third adds nothing.
  near.flows.apply_features(near.links[0].get());
  CHECK(changed() == 0);
  many.io.restart();
  while (near.flows.sweeps().visits < 2 * kMany) many.io.run_one();
  CHECK(changed() == kMany);
  CHECK(near.flows.sweeps().most_visits <= kMostInOneTurn);
  many.io.poll();
  CHECK(near.flows.sweeps().visits == 2 * kMany);
}
