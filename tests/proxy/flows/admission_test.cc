// SPDX-License-Identifier: Apache-2.0
// Tests the limits on flows as they follow from the records that enter and leave.
#include "proxy/flows/admission.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace longhaul;
using namespace longhaul::flows;
using boost::asio::ip::make_address;

namespace {

struct AdmissionBench {
  AdmissionBench() { config.limits = {.flows = 8, .flows_per_source = 4}; }

  FlowId enter(const char* client) { return admission.enter({.client = {make_address(client), 40000}}).id; }
  FlowId enter_from_peer(const char* peer) {
    return admission.enter({.client = {make_address("10.2.0.1"), 40000}, .far_side = true, .peer = peer}).id;
  }
  void remove(FlowId id) { admission.remove(id, FlowTable::End::closed); }
  std::optional<Reason> limit(const char* client) const {
    return admission.limit_reached(make_address(client));
  }
  bool has_room(const char* client) const { return admission.has_room(make_address(client)); }

  config::Config config;
  FlowTable table;
  std::vector<Crowded> told;
  Admission admission{config, table, [this](const Crowded& crowded) { told.push_back(crowded); }};
};

}  // namespace

TEST_CASE("a client at its limit uses no link, and above twice the limit nothing") {
  AdmissionBench bench;
  for (int i = 0; i < 3; ++i) bench.enter("10.1.0.1");
  CHECK_FALSE(bench.limit("10.1.0.1"));
  CHECK(bench.told.empty());
  bench.enter("10.1.0.1");
  CHECK(bench.limit("10.1.0.1") == reasons::source_limit);
  CHECK_FALSE(bench.limit("10.1.0.2"));
  REQUIRE(bench.told.size() == 1);
  CHECK(bench.told[0] == Crowded{.everyone = false, .sources = {*config::parse_network("10.1.0.1")}});
  for (int i = 0; i < 3; ++i) bench.enter("10.1.0.1");
  CHECK(bench.has_room("10.1.0.1"));
  bench.enter("10.1.0.1");
  CHECK_FALSE(bench.has_room("10.1.0.1"));
  CHECK(bench.has_room("10.1.0.2"));
}

TEST_CASE("at the limit of all flows everyone is crowded until an eighth has ended") {
  AdmissionBench bench;
  std::vector<FlowId> flows;
  for (const char* client : {"10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.4"})
    for (int i = 0; i < 2; ++i) {
      CHECK_FALSE(bench.limit("10.1.0.9"));
      flows.push_back(bench.enter(client));
    }
  CHECK(bench.limit("10.1.0.9") == reasons::flow_limit);
  CHECK(bench.has_room("10.1.0.9"));
  REQUIRE(bench.told.size() == 1);
  CHECK(bench.told[0].everyone);
  bench.remove(flows[0]);  // 7 of 8, which is not below the eighth yet
  CHECK_FALSE(bench.limit("10.1.0.9"));
  CHECK(bench.told.size() == 1);
  bench.remove(flows[1]);
  REQUIRE(bench.told.size() == 2);
  CHECK_FALSE(bench.told[1].everyone);
}

TEST_CASE("above twice the limit of all flows nothing is relayed") {
  AdmissionBench bench;
  for (int i = 0; i < 15; ++i) bench.enter_from_peer("a");
  CHECK(bench.has_room("10.1.0.1"));
  bench.enter_from_peer("a");
  CHECK_FALSE(bench.has_room("10.1.0.1"));
}

TEST_CASE("flows of a peer's clients count for the peer, not for the client's address") {
  AdmissionBench bench;
  for (int i = 0; i < 4; ++i) bench.enter_from_peer("a");
  CHECK_FALSE(bench.limit("10.2.0.1"));
  CHECK(bench.told.empty());
}

TEST_CASE("a peer leaves a share to this site's clients where it has any") {
  AdmissionBench bench;
  bench.config.peers.push_back({.name = "a"});
  std::vector<FlowId> flows;
  for (int i = 0; i < 6; ++i) flows.push_back(bench.enter_from_peer("a"));
  CHECK(bench.admission.has_room_for_peer("a"));
  bench.config.intercept.mode = config::Intercept::Mode::tproxy;
  CHECK_FALSE(bench.admission.has_room_for_peer("a"));
  bench.remove(flows[0]);
  CHECK(bench.admission.has_room_for_peer("a"));
}

TEST_CASE("changed limits are told at once") {
  AdmissionBench bench;
  for (int i = 0; i < 3; ++i) bench.enter("10.1.0.1");
  bench.config.limits.flows_per_source = 3;
  bench.admission.limits_changed();
  REQUIRE(bench.told.size() == 1);
  CHECK(bench.told[0].sources.size() == 1);
  bench.config.limits.flows = 3;
  bench.admission.limits_changed();
  CHECK(bench.told.back().everyone);
}
