// SPDX-License-Identifier: Apache-2.0
// Tests what the control API answers, over real HTTP, against a fake daemon.
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
#include "proxy/flows/ends.h"
#include "proxy/modules/smb/loss_reports.h"

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
  const auto ids = [&](const std::string& query) {
    std::vector<std::uint64_t> found;
    const auto page = get(api, "/v1/flows?" + query).json();
    for (const auto& flow : page.at("flows").as_array())
      found.push_back(flow.at("id").to_number<std::uint64_t>());
    return found;
  };
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

namespace {

// A module that has promised and lost.
class Loser final : public longhaul::modules::Instance {
 public:
  std::unique_ptr<longhaul::modules::Module> make_near(const longhaul::modules::Ends&) override {
    return nullptr;
  }
  std::unique_ptr<longhaul::modules::Module> make_far(const longhaul::modules::Ends&,
                                                      const longhaul::modules::Address&) override {
    return nullptr;
  }
  longhaul::modules::Losses* losses() override { return &reports; }

  std::shared_ptr<longhaul::smb::LostWrites> lost = std::make_shared<longhaul::smb::LostWrites>();
  longhaul::smb::LossReports reports =
      longhaul::smb::loss_reports(lost, [] { return std::int64_t{1'700'000'000}; });
};

}  // namespace

TEST_CASE("the metrics count lost writes by module, status and why show the sum") {
  RunningApi api;
  const auto client = boost::asio::ip::make_address("10.0.0.1"),
             server = boost::asio::ip::make_address("10.0.2.2");
  const auto ends = longhaul::flows::ends_of(client, {{}, server, 445});
  std::vector<longhaul::modules::Listed> list;
  for (const char* name : {"one", "two"}) {
    const auto loser = std::make_shared<Loser>();
    loser->lost->add({.ends = ends, .share = u"SHARE", .path = u"A"},
                     {.cause = longhaul::smb::Cause::link_lost, .ranges = {{0, 4096}}});
    list.push_back({.descriptor = {.name = name}, .instance = loser});
  }
  api.daemon.now.modules = list;
  api.start();
  const auto status = get(api, "/v1/status").json();
  const auto lost = status.at("lost_writes").at("lost");
  CHECK(lost.at("link_lost") == 2u);
  CHECK(lost.at("refused") == 0u);
  CHECK(status.at("lost_writes").at("waiting") == 2u);
  const auto files = get(api, "/v1/why?tuple=10.0.0.1-10.0.2.2:445").json().at("lost_files").as_array();
  REQUIRE(files.size() == 2);
  CHECK(json::serialize(files[1]) == R"({"file":"SHARE\\A","cause":"link_lost","ranges":[[0,4096]]})");
  CHECK(get(api, "/v1/why?tuple=10.0.0.1-10.0.2.2:445").json().at("told_files").as_array().empty());
  CHECK(get(api, "/v1/why?tuple=10.0.0.9-10.0.2.2:445").json().at("lost_files").as_array().empty());
  const std::string metrics = "\n" + get(api, "/metrics").body;
  for (const char* name : {"one", "two"})
    for (const char* line :
         {"_promises_lost_total{cause=\"link_lost\"} 1", "_promises_lost_total{cause=\"refused\"} 0",
          "_promises_reported_total{how=\"next_open\"} 0", "_promises_forgotten_total 0", "_lost_files 1"})
      CHECK(metrics.find("\nlonghaul_" + std::string(name) + line + "\n") != std::string::npos);
}

TEST_CASE("after the report why shows when and how the client was notified") {
  RunningApi api;
  const auto ends = longhaul::flows::ends_of(boost::asio::ip::make_address("10.0.0.1"),
                                             {{}, boost::asio::ip::make_address("10.0.2.2"), 445});
  const auto loser = std::make_shared<Loser>();
  const longhaul::smb::LostWrites::File file{.ends = ends, .share = u"SHARE", .path = u"A"};
  loser->lost->add(file, {.cause = longhaul::smb::Cause::link_lost, .ranges = {{0, 4096}}});
  CHECK(loser->lost->take(file));
  const std::vector<longhaul::modules::Listed> list = {{.descriptor = {.name = "one"}, .instance = loser}};
  api.daemon.now.modules = list;
  api.daemon.add_flow("10.0.0.1:5000-10.0.2.2:445");
  api.start();
  for (const std::string& asked : {std::string("tuple=10.0.0.1-10.0.2.2:139"), std::string("flow=1")}) {
    const auto why = get(api, "/v1/why?" + asked).json();
    CHECK(why.at("lost_files").as_array().empty());
    REQUIRE(why.at("told_files").as_array().size() == 1);
    CHECK(
        json::serialize(why.at("told_files").at(0)) ==
        R"({"file":"SHARE\\A","cause":"link_lost","ranges":[[0,4096]],"how":"next_open","at_s":1700000000})");
  }
  CHECK(get(api, "/v1/why?tuple=10.0.0.9-10.0.2.2:445").json().at("told_files").as_array().empty());
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
