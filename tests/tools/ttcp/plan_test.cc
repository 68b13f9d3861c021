// SPDX-License-Identifier: Apache-2.0
#include "tools/ttcp/plan.h"

#include <catch2/catch.hpp>
#include <numeric>

using namespace longhaul::ttcp;

TEST_CASE("the plan matches source 5: nine sizes, three kinds, five trials of 8 MiB each") {
  const auto plan = make_plan({});
  REQUIRE(plan.size() == 9 * 3 * 5);
  CHECK(plan.front().packet_bytes == 32);
  CHECK(plan.front().packets == 262'144);
  CHECK(plan[8].packet_bytes == 8192);
  CHECK(plan[8].packets == 1'024);
  for (const Test& test : plan) CHECK(test.packets * test.packet_bytes == 8 * 1024 * 1024);
}

TEST_CASE("UDP+12 carries twelve bytes more, so that its header is as large as TCP's") {
  const auto plan = make_plan({.sizes = {64}, .trials = 1});
  REQUIRE(plan.size() == 3);
  CHECK(plan[0].header_bytes() == 20);
  CHECK(plan[0].payload_bytes() == 64);
  CHECK(plan[1].header_bytes() == 8);
  CHECK(plan[1].payload_bytes() == 64);
  CHECK(plan[2].header_bytes() == 20);
  CHECK(plan[2].payload_bytes() == 76);
}

TEST_CASE("the same number of packets can be requested for each size") {
  for (const Test& test : make_plan({.packets = 1000})) CHECK(test.packets == 1000);
}

TEST_CASE("an interrupted sweep contains whole trials because trials follow each other") {
  const auto plan = make_plan({.trials = 3});
  for (std::size_t i = 1; i < plan.size(); ++i) CHECK(plan[i - 1].trial <= plan[i].trial);
  CHECK(plan.back().trial == 3);
}

TEST_CASE("a size that no packet can hold is refused with a sentence") {
  CHECK_NOTHROW(make_plan({.sizes = {16, 65'507 - 12}}));
  CHECK_NOTHROW(make_plan({.sizes = {65'507}, .kinds = {Kind::udp}}));
  for (const PlanOptions& wrong :
       {PlanOptions{.sizes = {15}}, PlanOptions{.sizes = {65'507 - 11}}, PlanOptions{.sizes = {}},
        PlanOptions{.kinds = {}}, PlanOptions{.trials = 0}, PlanOptions{.packets = 0},
        PlanOptions{.bytes = 1ull << 40}, PlanOptions{.padding_bytes = 5000}})
    CHECK_THROWS_AS(make_plan(wrong), std::invalid_argument);
}

TEST_CASE("kinds have the names used by the source and the command line") {
  CHECK(name_of(Kind::tcp, 0) == "TCP");
  CHECK(name_of(Kind::udp, 0) == "UDP");
  CHECK(name_of(Kind::udp_padded, 12) == "UDP+12");
  CHECK(name_of(Kind::udp_padded_setup, 12) == "UDP+12+RTT");
  CHECK(parse_kind("udp+12+rtt") == Kind::udp_padded_setup);
  CHECK_FALSE(parse_kind("sctp"));
}
