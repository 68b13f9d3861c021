// SPDX-License-Identifier: Apache-2.0
#include "proxy/control/talkers.h"

#include <catch2/catch.hpp>

#include "proxy/control/flow_ids.h"

namespace longhaul::control {
namespace {

std::vector<std::string> names(const RunningApi& api, const std::string& query) {
  std::vector<std::string> found;
  const auto answer = get(api, "/v1/talkers?" + query).json();
  for (const auto& each : answer.at("talkers").as_array()) found.emplace_back(each.at("name").as_string());
  return found;
}

TEST_CASE("talkers are summed by client, server, port or peer, the largest first") {
  RunningApi api;
  api.daemon.add_flow("10.0.0.1:1-10.0.2.2:445").bytes = {100, 0, 0, 10};
  api.daemon.add_flow("10.0.0.2:2-10.0.2.2:445").bytes = {60, 30, 5, 5};
  api.daemon.add_flow("[::ffff:10.0.0.2]:3-10.0.2.3:80").bytes = {20, 0, 0, 20};
  api.daemon.add_flow("[fd00::1]:4-server.example:443", flows::reasons::no_peer_for_network).bytes = {500, 0,
                                                                                                      0, 500};
  api.start();
  using Names = std::vector<std::string>;
  CHECK(names(api, "by=client") == Names{"fd00::1", "10.0.0.2", "10.0.0.1"});
  CHECK(names(api, "by=server") == Names{"server.example", "10.0.2.2", "10.0.2.3"});
  CHECK(names(api, "by=port&limit=2") == Names{"443", "445"});
  CHECK(names(api, "by=peer") == Names{"", "datacenter"});
  const auto answer = get(api, "/v1/talkers").json();
  CHECK(answer.at("count") == 3u);
  CHECK(answer.at("talkers").at(1).at("flows") == 2u);
  CHECK(answer.at("talkers").at(1).at("bytes").at("lan_in") == 80u);
  for (const auto* wrong : {"by=colour", "limit=0", "limit=1001", "limit=x", "colour=red"})
    CHECK(get(api, std::string("/v1/talkers?") + wrong).status == 400);
}

TEST_CASE("flows that have ended count for an hour") {
  RunningApi api;
  auto& ended = api.daemon.add_flow("10.0.0.1:1-10.0.2.2:445");
  ended.bytes = {1000, 0, 0, 10};
  api.daemon.talkers.add(ended, std::chrono::steady_clock::now());
  api.daemon.table.remove(ended.id, flows::FlowTable::End::closed);
  api.daemon.add_flow("10.0.0.1:2-10.0.2.2:445").bytes = {1, 0, 0, 1};
  api.daemon.add_flow("10.0.0.2:1-10.0.2.2:445").bytes = {500, 0, 0, 10};
  api.start();
  const auto answer = get(api, "/v1/talkers").json();
  const auto& first = answer.at("talkers").at(0);
  CHECK(first.at("name") == "10.0.0.1");
  CHECK(first.at("flows") == 1u);
  CHECK(first.at("ended") == 1u);
  CHECK(first.at("bytes").at("lan_in") == 1001u);
  CHECK(answer.at("talkers").at(1).at("ended") == 0u);
}

TEST_CASE("thousands of clients are summed in slices") {
  RunningApi api;
  for (int i = 0; i < 3000; ++i)
    api.daemon.add_flow("10." + std::to_string(i / 250) + ".1." + std::to_string(i % 250) + ":1-10.0.2.2:445")
        .bytes = {static_cast<std::uint64_t>(i), 0, 0, 0};
  api.start();
  CHECK(get(api, "/v1/talkers?limit=3").json().at("count") == 3000u);
  CHECK(names(api, "limit=1") == std::vector<std::string>{"10.11.1.249"});
}

TEST_CASE("flows are filtered by client, server and any text") {
  RunningApi api;
  api.daemon.add_flow("10.0.0.1:1-10.0.2.2:445");
  api.daemon.add_flow("10.0.1.2:2-10.0.2.3:80");
  api.daemon.add_flow("[fd00::1]:3-Server.Example:80", flows::reasons::no_peer_for_network);
  api.start();
  const auto ids = [&](const std::string& query) { return flow_ids(api, query); };
  using Ids = std::vector<std::uint64_t>;
  CHECK(ids("client=10.0.0.1") == Ids{1});
  CHECK(ids("client=10.0.0.0/16") == Ids{1, 2});
  CHECK(ids("client=fd00::/8") == Ids{3});
  CHECK(ids("server=10.0.2.0/24") == Ids{1, 2});
  CHECK(ids("server=server.example") == Ids{3});
  CHECK(ids("server=10.0.2.3&client=10.0.0.0/24").empty());
  CHECK(ids("search=SERVER.ex") == Ids{3});
  CHECK(ids("search=datacenter") == Ids{1, 2});
  CHECK(ids("search=no_peer") == Ids{3});
  CHECK(ids("search=10.0.0.1:1") == Ids{1});
  CHECK(ids("search=nothing%20like%20it").empty());
  CHECK(get(api, "/v1/flows?client=somebody").status == 400);
}

}  // namespace
}  // namespace longhaul::control
