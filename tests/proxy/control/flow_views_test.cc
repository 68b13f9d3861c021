// SPDX-License-Identifier: Apache-2.0
#include "proxy/control/flow_views.h"

#include <catch2/catch.hpp>

using namespace longhaul::control;
using namespace std::chrono_literals;
using longhaul::flows::FlowRecord;
using longhaul::flows::FlowTable;
namespace flow_reasons = longhaul::flows::reasons;

namespace {

FlowRecord viewed_flow() {
  FlowRecord flow{.id = 7};
  flow.client = {boost::asio::ip::make_address("2001:db8::1"), 5000};
  flow.destination.address = boost::asio::ip::make_address("10.0.2.2");
  flow.destination.port = 445;
  flow.peer = "datacenter";
  flow.started = std::chrono::steady_clock::time_point{10s};
  flow.bytes.wan_out = 3;
  return flow;
}

Status status_with_link(std::string carrier, std::chrono::microseconds rtt) {
  Status status;
  status.links.emplace_back();
  status.links.back().peer = "datacenter";
  status.links.back().carrier = std::move(carrier);
  status.links.back().smoothed_rtt = rtt;
  return status;
}

}  // namespace

TEST_CASE("a live flow is shown with its age and its link, as far as that is known") {
  FlowRecord flow = viewed_flow();
  const auto now = flow.started + 1500ms;
  const auto shown = view(flow, LinkFacts{status_with_link("udp", 20ms)}, now);
  CHECK(shown.at("id").to_number<int>() == 7);
  CHECK(shown.at("client").as_string() == "[2001:db8::1]:5000");
  CHECK(shown.at("destination").as_string() == "10.0.2.2:445");
  CHECK(shown.at("state").as_string() == "live");
  CHECK(shown.at("age_s").as_double() == 1.5);
  CHECK(shown.at("rtt_ms").as_double() == 20);
  CHECK(shown.at("carrier").as_string() == "udp");
  CHECK(shown.at("bytes").at("wan_out").to_number<int>() == 3);
  CHECK(shown.at("module").is_null());
  CHECK(shown.at("origin").as_string() == "forward");

  const auto unknown = view(flow, LinkFacts{status_with_link("", 0us)}, now);
  CHECK(unknown.at("rtt_ms").is_null());
  CHECK(unknown.at("carrier").is_null());
  const auto none = view(flow, LinkFacts{Status{}}, now);
  CHECK(none.at("rtt_ms").is_null());

  flow.peer.clear();  // outside the link
  flow.far_side = true;
  const auto outside = view(flow, LinkFacts{status_with_link("udp", 20ms)}, now);
  CHECK(outside.at("peer").is_null());
  CHECK(outside.at("carrier").is_null());
  CHECK(outside.at("origin").as_string() == "link");
}

TEST_CASE(
    "a flow that has ended is shown with the party that reset it, and without what has no meaning any more") {
  FlowTable::Ended closed{.record = viewed_flow(), .end = FlowTable::End::closed};
  CHECK(view(closed).at("state").as_string() == "closed");
  CHECK(view(closed).at("reset_by").is_null());
  CHECK(view(closed).at("age_s").is_null());
  FlowTable::Ended reset{.record = viewed_flow(), .end = FlowTable::End::reset};
  reset.record.reset_by = longhaul::flows::ResetBy::server;
  CHECK(view(reset).at("state").as_string() == "reset");
  CHECK(view(reset).at("reset_by").as_string() == "server");
}

TEST_CASE("a forecast has the sentence of its reason unless it has its own") {
  longhaul::flows::Tuple tuple;
  tuple.client = viewed_flow().client;
  tuple.destination = viewed_flow().destination;
  Forecast forecast{.path = Path::refused, .reason = flow_reasons::link_down};
  auto shown = view_forecast(tuple, forecast);
  CHECK(shown.at("path").as_string() == "refused");
  CHECK(shown.at("reason").as_string() == flow_reasons::link_down.code);
  CHECK(shown.at("sentence").as_string() == flow_reasons::link_down.sentence);
  CHECK(shown.at("peer").is_null());
  CHECK(shown.at("rule").is_null());
  forecast.sentence = "It is closed.";
  forecast.rule = 2;
  shown = view_forecast(tuple, forecast);
  CHECK(shown.at("sentence").as_string() == "It is closed.");
  CHECK(shown.at("rule").to_number<int>() == 2);
}
