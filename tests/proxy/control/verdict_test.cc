// SPDX-License-Identifier: Apache-2.0
#include "proxy/control/verdict.h"

#include <catch2/catch.hpp>

#include "proxy/control/fake_daemon.h"

namespace longhaul::control {
namespace {

Status healthy() {
  Status status;
  status.links.push_back(link_up("datacenter"));
  status.intercept = InterceptState::up;
  return status;
}

TEST_CASE("a working pair has no problem, and its savings are the bytes that the WAN did not carry") {
  CHECK(problems(healthy(), {}).empty());
  const auto verdict =
      view_verdict(healthy(), {}, {.lan_in = 100, .lan_out = 300, .wan_in = 90, .wan_out = 10});
  CHECK(verdict.at("ok") == true);
  CHECK(verdict.at("saved_bytes") == 300);
  CHECK(verdict.at("saved_share") == 0.75);
  CHECK(view_verdict(healthy(), {}, {}).at("saved_share").is_null());
  CHECK(view_verdict(healthy(), {}, {.lan_in = 10, .wan_out = 12}).at("saved_bytes") == -2);
}

TEST_CASE("each problem is a sentence with a remedy, the serious ones first") {
  auto status = healthy();
  status.links.push_back(link_up("slow"));
  status.links.back().udp.state = link::UdpState::failed;
  status.links.push_back(link_up("gone"));
  status.links.back().state = link::LinkState::down;
  status.links.back().last_error = "connection refused";
  status.intercept = InterceptState::down;
  status.memory_short = true;
  status.fail_closed = FailClosed::missing;
  const auto found = problems(status, {.transport = config::Transport::off});
  REQUIRE(found.size() == 6);
  CHECK(found[0].sentence.find("fail") != std::string::npos);
  CHECK(found[2].sentence == "The link to \"gone\" is down (connection refused).");
  CHECK(found.back().sentence.find("The peer \"slow\" does not answer over UDP") == 0);
  CHECK_FALSE(found.back().is_serious);
  for (const auto& problem : found) {
    CHECK(problem.sentence.ends_with("."));
    CHECK_FALSE(problem.remedy.empty());
    CHECK_FALSE(problem.remedy.ends_with("."));
  }
  CHECK(view_verdict(status, {}, {}).at("ok") == false);
}

TEST_CASE("a link that was never up, or is silent, is reported as a problem of its own") {
  auto status = healthy();
  status.links[0].state = link::LinkState::never_up;
  CHECK(problems(status, {}).at(0).remedy.find("fingerprint") != std::string::npos);
  status.links[0].state = link::LinkState::silent;
  CHECK(problems(status, {}).at(0).sentence.find("stopped answering") != std::string::npos);
}

TEST_CASE("a path that does not work is named, but not while a new link still examines it") {
  auto status = healthy();
  auto& link = status.links[0];
  link.state_age = std::chrono::seconds{60};
  link.udp.state = link::UdpState::up;
  link.paths = {{.name = "mpls", .role = link::PathRole::none}, {.name = "lte", .role = link::PathRole::carries}};
  link.paths[0].udp.state = link::UdpState::probing;
  REQUIRE(problems(status, {}).size() == 1);
  CHECK(problems(status, {})[0].sentence.starts_with("The path \"mpls\" to \"datacenter\" does not work"));
  CHECK_FALSE(problems(status, {})[0].is_serious);
  link.state_age = std::chrono::seconds{1};
  CHECK(problems(status, {}).empty());
  link.paths[0].udp.state = link::UdpState::failed;
  CHECK(problems(status, {}).size() == 1);
}

TEST_CASE("a collector that is not reached is named until it is reached again") {
  auto status = healthy();
  status.flow_export.emplace();
  status.metric_export.emplace();
  status.syslog.emplace();
  CHECK(problems(status, {}).empty());
  status.flow_export->last_error = "no such host";
  status.metric_export->last_error = "cannot connect: Connection refused";
  status.syslog->fails = true;
  const auto found = problems(status, {});
  REQUIRE(found.size() == 3);
  CHECK(found[0].sentence == "Flow records do not reach the IPFIX collector (no such host).");
  CHECK(found[1].sentence == "Metrics do not reach the OpenTelemetry collector (cannot connect: Connection refused).");
  CHECK(found[2].remedy.find("[log] syslog") != std::string::npos);
}

}  // namespace
}  // namespace longhaul::control
