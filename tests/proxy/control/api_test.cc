// SPDX-License-Identifier: Apache-2.0
// Tests what the control API answers, over real HTTP, against a fake daemon. flow_answers_test.cc has what it
// says about flows, loss_views_test.cc what it says about lost writes.
#include "proxy/control/api.h"

#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>
#include <set>
#include <sstream>

#include "proxy/control/http_client.h"

using namespace longhaul::control;
using longhaul::flows::FlowTable;
using longhaul::flows::Reason;
namespace reasons = longhaul::flows::reasons;
namespace json = boost::json;

TEST_CASE("the status has site, links, flows, limits and interception") {
  RunningApi api;
  api.daemon.add_flow("10.0.0.1:5000-10.0.2.2:445").bytes = {1, 2, 3, 4};
  api.daemon.add_flow("10.0.0.1:5001-192.0.2.1:80", reasons::no_peer_for_network);
  api.start();
  const auto reply = get(api, "/v1/status");
  REQUIRE(reply.status == 200);
  CHECK(reply.content_type == "application/json");
  const auto status = reply.json();
  CHECK(status.at("site") == "branch");
  CHECK(status.at("uptime_s") == 90);
  CHECK(status.at("flows").at("live") == 2u);
  CHECK(status.at("flows").at("bytes").at("wan_out") == 4u);
  CHECK(status.at("flows").at("live_by_reason").at("no_peer_for_network") == 1u);
  CHECK(status.at("memory").at("limit_bytes") == 512u << 20);
  CHECK(status.at("memory").at("parts").at(1).at("part") == "ahead");
  CHECK(status.at("memory").at("parts").at(1).at("bytes") == 2u << 20);
  CHECK(status.at("memory").at("parts").at(1).at("limit_bytes") == 64u << 20);
  CHECK(status.at("dictionaries").at("bytes") == 64u << 20);
  CHECK(status.at("lost_writes").as_object().empty());  // there are no modules
  CHECK(status.at("dictionaries").at("limit_bytes") == 680u << 20);
  CHECK(status.at("intercept").at("state") == "down");
  CHECK(status.at("intercept").at("bypassed").at("over_rate") == 7u);
  CHECK(status.at("features").at("transport") == "auto");
  CHECK(status.at("features").at("compression") == true);
  const auto& link = status.at("links").as_array().at(0);
  CHECK(link.at("peer") == "datacenter");
  CHECK(link.at("state") == "up");
  CHECK(link.at("rtt_ms") == 100.25);
  CHECK(link.at("last_error").is_null());
  CHECK(link.at("udp").at("state") == "up");
  CHECK(link.at("udp").at("packets_lost") == 20u);
  CHECK(link.at("udp").at("rate") == json::value({{"law", "limited"},
                                                  {"phase", "cruise"},
                                                  {"line_bits", 48'100'000u},
                                                  {"base_rtt_ms", 99.0},
                                                  {"queue_ms", 1.25},
                                                  {"competes", false},
                                                  {"policed", false}}));
  CHECK(link.at("udp").at("datagram_bytes").is_null());
  const auto& reduction = link.at("reduction");
  CHECK(reduction.at("active").as_bool());
  CHECK(reduction.at("out").at("bytes").at("encoded") == 50'000u);
  CHECK(reduction.at("out").at("hits").at(0).at("below") == 64u);
  CHECK(reduction.at("out").at("hits").at(5).at("below").is_null());
  CHECK(reduction.at("out").at("hits").at(5).at("copies") == 12u);
  CHECK(reduction.at("in").at("needs") == 3u);
  CHECK(status.at("disk_dictionary").at("segments") == 260u);
}

TEST_CASE("features change together or not at all, in the order of the request") {
  RunningApi api;
  api.start();
  auto reply =
      post(api, "/v1/features", R"({"preset": "T", "fec": "10:2", "compression": false, "window": 65535})");
  REQUIRE(reply.status == 200);
  CHECK(reply.json().at("features") == get(api, "/v1/features").json());
  const auto features = api.on_loop([&] { return api.daemon.in_force; });
  CHECK(features.modules.value("smb") == 0);
  CHECK_FALSE(features.compression);
  CHECK(features.window_bytes == 65535);
  CHECK(features.fec.source_packets == 10);
  const auto changed = reply.json().at("changed").as_array();
  CHECK(std::find(changed.begin(), changed.end(), json::value("smb")) != changed.end());
  CHECK(std::find(changed.begin(), changed.end(), json::value("dedup_disk")) == changed.end());

  const auto bad = GENERATE(as<std::string>{}, R"({"compression": true, "colour": "red"})",
                            R"({"compression": true, "fec": "many"})", R"({"compression": null})",
                            R"({"compression": [true]})", R"({"window": 1.5})", "{}", "[]", "true", "", "{",
                            R"({"a":{"b":{"c":{"d":{"e":1}}}}})");
  reply = post(api, "/v1/features", bad);
  CHECK(reply.status == 400);
  CHECK_FALSE(reply.error().empty());
  CHECK(api.on_loop([&] { return api.daemon.in_force == features; }));
}

TEST_CASE("status names the preset in force and what a restart undoes") {
  RunningApi api;
  api.start();
  CHECK(get(api, "/v1/status").json().at("preset") == "A+F");
  CHECK(get(api, "/v1/status").json().at("features_until_restart").as_object().empty());
  REQUIRE(post(api, "/v1/features", R"({"compression": false})").status == 200);
  CHECK(get(api, "/v1/status").json().at("preset").is_null());
  CHECK(get(api, "/v1/status").json().at("features_until_restart") == json::object{{"compression", true}});
  for (const std::string preset : {"B", "T", "A", "F", "A+F"}) {
    REQUIRE(post(api, "/v1/features", R"({"preset": ")" + preset + R"("})").status == 200);
    CHECK(get(api, "/v1/status").json().at("preset").as_string() == preset);
  }
  CHECK(get(api, "/v1/status").json().at("features_until_restart").as_object().empty());
}

TEST_CASE("interception rules are installed and removed, and a failure has a reason") {
  RunningApi api;
  api.start();
  CHECK(post(api, "/v1/intercept", R"({"action": "up"})").json().at("state") == "up");
  CHECK(get(api, "/v1/intercept").json().at("state") == "up");
  CHECK(post(api, "/v1/intercept", R"({"action": "down"})").json().at("state") == "down");
  CHECK(get(api, "/v1/intercept").json().at("rules") == "table inet longhaul {\n}\n");
  const auto closed =
      post(api, "/v1/intercept", R"({"action": "fail_closed_install"})").json().at("fail_closed");
  CHECK(closed.at("state") == "enforced");
  CHECK(closed.at("rules") == "table inet longhaul_closed {\n}\n");
  CHECK(get(api, "/v1/status").json().at("fail_closed").at("state") == "enforced");
  CHECK(post(api, "/v1/intercept", R"({"action": "fail_closed_remove"})")
            .json()
            .at("fail_closed")
            .at("state") == "lifted");
  CHECK(post(api, "/v1/intercept", R"({"action": "sideways"})").status == 400);
  CHECK(post(api, "/v1/intercept", R"({"up": true})").status == 400);
  api.on_loop([&] { api.daemon.now.intercept = InterceptState::not_configured; });
  const auto refused = post(api, "/v1/intercept", R"({"action": "up"})");
  CHECK(refused.status == 409);
  CHECK(refused.error() == "[intercept] names no interfaces.");
}

TEST_CASE("clearing the cache reports how much was cleared") {
  RunningApi api;
  api.start();
  const auto cleared = post(api, "/v1/clear-cache", "").json();
  CHECK(cleared.at("disk_bytes") == 5u << 20);
  CHECK(cleared.at("peers").at(0).at("disk_bytes") == 7u << 20);
  CHECK(cleared.at("peers").at(1).at("disk_bytes").is_null());
  CHECK(cleared.at("disk_key") == "destroyed");
  CHECK(post(api, "/v1/clear-cache", "").json().at("disk_bytes") == 0u);
  api.on_loop([&] { api.daemon.cache.object_bytes = 3000; });
  CHECK(post(api, "/v1/clear-cache", R"({"only": "objects"})").json().at("object_bytes") == 3000u);
  for (const char* wrong : {R"({"only": "disk"})", R"({"also": "objects"})", "objects", "[]"})
    CHECK(post(api, "/v1/clear-cache", wrong).status == 400);
}

TEST_CASE("a reload reports what changed, or what is wrong with the new configuration") {
  RunningApi api;
  api.start();
  CHECK(post(api, "/v1/reload", "").json().at("changed").at(0) == "[[peer]] datacenter: fingerprint");
  api.on_loop([&] { return api.daemon.mistake = "b.toml:7: [[peer]] has no key \"x\"."; });
  const auto refused = post(api, "/v1/reload", "");
  CHECK(refused.status == 409);
  CHECK(refused.json().at("error") == "b.toml:7: [[peer]] has no key \"x\".");
  CHECK(get(api, "/v1/reload").status == 405);
}

TEST_CASE("the metrics are valid Prometheus text, with one type per name and one counter per reason") {
  RunningApi api;
  api.daemon.add_flow("10.0.0.1:5000-10.0.2.2:445").bytes = {7, 0, 0, 9};
  api.daemon.add_flow("10.0.0.1:5001-10.0.2.2:445", reasons::link_down).bytes = {1, 0, 0, 0};
  api.daemon.table.remove(2, FlowTable::End::reset);
  api.daemon.now.links[0].peer = "quo\"ted\\\n";
  api.start();
  const auto reply = get(api, "/metrics");
  REQUIRE(reply.status == 200);
  CHECK(reply.content_type.starts_with("text/plain"));
  const auto has = [&](const std::string& line) {
    return ("\n" + reply.body).find("\n" + line + "\n") != std::string::npos;
  };
  CHECK(has("longhaul_flow_bytes_total{side=\"lan\",direction=\"in\"} 8"));
  CHECK(has("longhaul_flows_live{reason=\"optimised\"} 1"));
  CHECK(has("longhaul_flows_live{reason=\"link_down\"} 0"));
  CHECK(has("longhaul_flows_reason_total{reason=\"link_down\"} 1"));
  CHECK(has("longhaul_flows_ended_total{end=\"reset\"} 1"));
  CHECK(has("longhaul_info{site=\"branch\",version=\"0.1.0\"} 1"));
  CHECK(has(R"(longhaul_link_state{peer="quo\"ted\\\n",state="up"} 1)"));
  CHECK(has(R"(longhaul_link_rtt_seconds{peer="quo\"ted\\\n"} 0.10025)"));
  CHECK(has(R"(longhaul_link_carrier{peer="quo\"ted\\\n",carrier="tcp"} 1)"));
  CHECK(has(R"(longhaul_udp_packets_total{peer="quo\"ted\\\n",kind="lost"} 20)"));
  CHECK(has(R"(longhaul_reduction_bytes_total{peer="quo\"ted\\\n",direction="out",stage="deduped"} 80000)"));
  CHECK(has(R"(longhaul_reduction_copies_total{peer="quo\"ted\\\n",below="inf"} 12)"));
  CHECK(has(R"(longhaul_reduction_events_total{peer="quo\"ted\\\n",direction="in",event="need"} 3)"));
  CHECK(has("longhaul_disk_dictionary_segments_total{event=\"refused\"} 2"));
  CHECK(has("longhaul_disk_dictionary_bytes{kind=\"stored\"} 1073741824"));
  CHECK(has("longhaul_port_bytes_total{port=\"445\",side=\"lan\",direction=\"in\"} 8"));
  for (const Reason reason : longhaul::flows::all_reasons())
    CHECK(reply.body.find("longhaul_flows_reason_total{reason=\"" + std::string(reason->code) + "\"}") !=
          std::string::npos);

  // Every sample stands under its own TYPE line, and no name has two.
  std::set<std::string> types;
  std::string current;
  std::istringstream lines(reply.body);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) {
      current = line.substr(7, line.find(' ', 7) - 7);
      CHECK(types.insert(current).second);
      CHECK(line.ends_with(" counter") == current.ends_with("_total"));
    } else if (!line.starts_with("#")) {
      CHECK(line.substr(0, line.find_first_of("{ ")) == current);
    }
  }
  CHECK(types.size() > 20);
}

TEST_CASE("curl can use the control API") {
  RunningApi api;
  api.start();
  const auto run = [](const std::string& command) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
    std::string text;
    std::array<char, 512> buffer;
    while (std::fgets(buffer.data(), buffer.size(), pipe.get()) != nullptr) text += buffer.data();
    return text;
  };
  const auto curl = [&](const std::string& what) {
    return run("curl -sS --noproxy '*' --max-time 10 " + what + " 2>&1");
  };
  const auto base = "http://127.0.0.1:" + api.port();
  CHECK(json::parse(curl(base + "/v1/status")).at("site") == "branch");
  CHECK(json::parse(curl("-H 'Authorization: Bearer " + kTestToken + "' -d '{\"preset\":\"F\"}' " + base +
                         "/v1/features"))
            .at("features")
            .at("transport") == "udp");
  CHECK(curl("-o /dev/null -w '%{http_code}' -d '{}' " + base + "/v1/features") == "401");
  CHECK(curl("-o /dev/null -w '%{http_code}' -H 'Host: evil.example:" + api.port() + "' " + base +
             "/v1/status") == "403");
  CHECK(curl("-o /dev/null -w '%{http_code}' -I " + base + "/metrics") == "200");
  // Three requests on one connection.
  CHECK(curl("-o /dev/null -o /dev/null -o /dev/null -w '%{num_connects}' " + base + "/v1/status " + base +
             "/v1/flows " + base + "/metrics") == "100");
}
