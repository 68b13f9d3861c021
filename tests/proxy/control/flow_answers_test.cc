// SPDX-License-Identifier: Apache-2.0
// What the control API says about flows, over real HTTP, against a fake daemon: lists, filters, and why.
#include "proxy/control/flow_answers.h"

#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <set>

#include "proxy/control/flow_ids.h"

using namespace longhaul::control;
using longhaul::flows::FlowTable;
namespace reasons = longhaul::flows::reasons;
namespace json = boost::json;

TEST_CASE("a flow is shown with its addresses, bytes, round trip, age, features and reason") {
  RunningApi api;
  auto& flow = api.daemon.add_flow("[fd00::1]:5000-10.0.2.2:445");
  flow.bytes = {10, 20, 30, 40};
  flow.origin = longhaul::flows::Origin::tproxy;
  flow.started -= std::chrono::seconds{5};
  api.start();
  const auto shown = get(api, "/v1/flows/1").json();
  CHECK(shown.at("client") == "[fd00::1]:5000");
  CHECK(shown.at("destination") == "10.0.2.2:445");
  CHECK(shown.at("origin") == "tproxy");
  CHECK(shown.at("side") == "near");
  CHECK(shown.at("state") == "live");
  CHECK(shown.at("reason") == "optimised");
  CHECK(shown.at("rtt_ms") == 100.25);
  CHECK(shown.at("carrier") == "tcp");
  CHECK(shown.at("age_s").as_double() >= 5.0);
  CHECK(shown.at("age_s").as_double() < 60.0);
  CHECK(shown.at("bytes").at("lan_in") == 10u);
  CHECK(shown.at("features").at("fec") == "adaptive");
}

TEST_CASE("ten thousand flows are read page by page, each once, while others start and end") {
  RunningApi api;
  for (int i = 0; i < 10'000; ++i)
    api.daemon.add_flow("10.0.0.1:" + std::to_string(1000 + i) + "-10.0.2.2:445");
  api.start();
  HttpClient client{api.endpoint()};
  std::set<std::uint64_t> seen;
  std::size_t pages = 0;
  for (json::value next = 0; !next.is_null(); ++pages) {
    const auto page = client.get("/v1/flows?limit=1000&after=" + json::serialize(next)).json();
    for (const auto& flow : page.at("flows").as_array())
      CHECK(seen.insert(flow.at("id").to_number<std::uint64_t>()).second);
    next = page.at("next");
    api.on_loop([&] {
      api.daemon.table.remove(api.daemon.table.live().begin()->first, FlowTable::End::closed);
      api.daemon.add_flow("10.0.0.2:5000-10.0.2.2:445");
    });
  }
  CHECK(pages >= 10);
  CHECK(seen.size() >= 10'000);
  for (std::uint64_t id = 1; id <= 10'000; ++id) CHECK(seen.contains(id));
}

TEST_CASE("the event loop keeps running while a long page of flows is built") {
  RunningApi api;
  for (int i = 0; i < 1000; ++i) api.daemon.add_flow("10.0.0.1:5000-10.0.2.2:445");
  api.start();
  // A handler that is always ready counts the turns of the loop.
  std::uint64_t turns = 0;
  bool counting = true;
  boost::asio::any_io_executor loop = api.on_loop([&] { return api.executor(); });
  std::function<void()> turn = [&] {
    ++turns;
    if (counting) boost::asio::post(loop, turn);
  };
  HttpClient client{api.endpoint()};
  const auto before = api.on_loop([&] {
    turn();
    return turns;
  });
  CHECK(client.get("/v1/flows?limit=1000").json().at("flows").as_array().size() == 1000);
  const auto after = api.on_loop([&] {
    counting = false;
    return turns;
  });
  CHECK(after - before >= 1000 / 32);
}

TEST_CASE("flows are filtered by peer, reason and port") {
  RunningApi api;
  api.daemon.add_flow("10.0.0.1:1-10.0.2.2:445");
  api.daemon.add_flow("10.0.0.1:2-10.0.2.2:80");
  api.daemon.add_flow("10.0.0.1:3-192.0.2.1:80", reasons::no_peer_for_network);
  api.start();
  const auto ids = [&](const std::string& query) { return flow_ids(api, query); };
  using Ids = std::vector<std::uint64_t>;
  CHECK(ids("peer=datacenter") == Ids{1, 2});
  CHECK(ids("peer=") == Ids{3});
  CHECK(ids("peer=nobody").empty());
  CHECK(ids("port=80") == Ids{2, 3});
  CHECK(ids("reason=no_peer_for_network") == Ids{3});
  CHECK(ids("port=80&peer=datacenter") == Ids{2});
  CHECK(ids("limit=1&after=1") == Ids{2});
}

TEST_CASE("invalid flow queries are answered with one sentence") {
  RunningApi api;
  api.start();
  const auto target =
      GENERATE(as<std::string>{}, "/v1/flows?limit=0", "/v1/flows?limit=1001", "/v1/flows?limit=-1",
               "/v1/flows?limit=1e3", "/v1/flows?after=x", "/v1/flows?reason=bored", "/v1/flows?port=65536",
               "/v1/flows?colour=red", "/v1/flows/x", "/v1/flows/1/2", "/v1/flows/",
               "/v1/flows/18446744073709551616", "/v1/why", "/v1/why?flow=1&tuple=x", "/v1/why?flow=x",
               "/v1/why?tuple=x", "/v1/why?name=x", "/v1/status?x=1");
  const auto reply = get(api, target);
  CHECK(reply.status == 400);
  CHECK_FALSE(reply.error().empty());
}

TEST_CASE("why explains a live flow by number and by its addresses") {
  RunningApi api;
  api.daemon.add_flow("10.0.0.1:5000-192.0.2.1:80", reasons::no_peer_for_network);
  api.start();
  const auto target =
      GENERATE(as<std::string>{}, "/v1/why?flow=1", "/v1/why?tuple=10.0.0.1:5000-192.0.2.1:80",
               "/v1/why?tuple=10.0.0.1%3A5000-192.0.2.1%3A80");
  const auto why = get(api, target).json();
  const auto& row = reasons::no_peer_for_network;
  CHECK(why.at("reason") == json::value(row.code));
  CHECK(why.at("sentence") == json::value(row.sentence));
  CHECK(why.at("remedy") == json::value(row.remedy));
  CHECK(why.at("flow").at("id") == 1u);
  CHECK(why.at("features").at("fast_connect") == true);
}

TEST_CASE("why reports how a recent flow ended, and what would happen now") {
  RunningApi api;
  api.daemon.add_flow("10.0.0.1:5000-10.0.2.2:80", reasons::link_down);
  api.daemon.table.remove(1, FlowTable::End::reset);
  api.start();
  CHECK(get(api, "/v1/why?flow=1").json().at("flow").at("state") == "reset");
  CHECK(get(api, "/v1/flows/1").json().at("reason") == "link_down");
  const auto why = get(api, "/v1/why?tuple=10.0.0.1-10.0.2.2:80").json();
  CHECK(why.at("flow").is_null());
  CHECK(why.at("last").at("reason") == "link_down");
  CHECK(why.at("reason") == "optimised");
}

TEST_CASE("why reports what would happen to a new flow, and by which rule") {
  RunningApi api;
  api.start();
  auto why = get(api, "/v1/why?tuple=10.0.0.1:5000-10.0.2.2:445").json();
  CHECK(why.at("flow").is_null());
  CHECK(why.at("last").is_null());
  CHECK(why.at("path") == "over_link");
  CHECK(why.at("peer") == "datacenter");
  CHECK(why.at("rule") == 1u);
  CHECK(why.at("tuple") == "10.0.0.1:5000-10.0.2.2:445");
  why = get(api, "/v1/why?tuple=10.0.0.1:5000-server.example:80").json();
  CHECK(why.at("path") == "bypasses_link");
  CHECK(why.at("rule").is_null());
  CHECK(why.at("reason") == "no_peer_for_network");
  api.on_loop([&] { api.daemon.fail_closed = true; });
  why = get(api, "/v1/why?tuple=10.0.0.1:5000-server.example:80").json();
  CHECK(why.at("path") == "refused");
  CHECK(std::string(why.at("sentence").as_string()).find("fail = closed") != std::string::npos);
}

TEST_CASE("an unknown flow gives not found, with a sentence on how to ask instead") {
  RunningApi api;
  api.start();
  const auto reply = get(api, GENERATE(as<std::string>{}, "/v1/flows/7", "/v1/why?flow=7"));
  CHECK(reply.status == 404);
  CHECK(reply.error().find("flow 7") != std::string::npos);
}
