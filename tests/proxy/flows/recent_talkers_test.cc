// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/recent_talkers.h"

#include <catch2/catch.hpp>

#include "proxy/flows/tuple.h"

namespace longhaul::flows {
namespace {

using namespace std::chrono_literals;

FlowRecord flow(const std::string& ends, std::uint64_t lan_in) {
  const auto tuple = parse_tuple(ends).value();
  FlowRecord record;
  record.client = tuple.client;
  record.destination = tuple.destination;
  record.peer = "far";
  record.bytes.lan_in = lan_in;
  return record;
}

std::string client(int number) { return "10." + std::to_string(number / 250) + ".1." + std::to_string(number % 250); }

TEST_CASE("recent talkers: ended flows are summed by each kind of name") {
  RecentTalkers talkers;
  const RecentTalkers::TimePoint now{1h};
  talkers.add(flow("10.0.0.1:1-server.example:443", 5), now);
  talkers.add(flow("10.0.0.1:2-10.0.2.2:443", 7), now + 15min);
  const auto clients = talkers.by(TalkersBy::client, now + 15min);
  REQUIRE(clients.size() == 1);
  CHECK(clients.at("10.0.0.1").flows == 2);
  CHECK(clients.at("10.0.0.1").bytes.lan_in == 12);
  CHECK(talkers.by(TalkersBy::server, now + 15min).at("server.example").lan() == 5);
  CHECK(talkers.by(TalkersBy::port, now + 15min).at("443").lan() == 12);
  CHECK(talkers.by(TalkersBy::peer, now + 15min).at("far").flows == 2);
}

TEST_CASE("recent talkers: what ended is kept for an hour at least, and not for ever") {
  RecentTalkers talkers;
  RecentTalkers::TimePoint now{1h};
  talkers.add(flow("10.0.0.1:1-10.0.2.2:443", 5), now);
  CHECK(talkers.by(TalkersBy::client, now + 61min).size() == 1);
  CHECK(talkers.by(TalkersBy::client, now + 71min).empty());
  // One more flow in each interval takes the place of the oldest.
  for (int i = 1; i < 20; ++i) talkers.add(flow(client(i) + ":1-10.0.2.2:443", 5), now += RecentTalkers::kInterval);
  CHECK(talkers.by(TalkersBy::client, now).size() == RecentTalkers::kIntervals);
}

TEST_CASE("recent talkers: of too many names the largest stay") {
  RecentTalkers talkers;
  const RecentTalkers::TimePoint now{1h};
  constexpr int kFlows = 5000;
  for (int i = 0; i < kFlows; ++i)  // small and large ones mixed
    talkers.add(flow(client(i) + ":1-10.0.2.2:443", 1 + static_cast<std::uint64_t>(i * 7919 % kFlows)), now);
  const auto kept = talkers.by(TalkersBy::client, now);
  REQUIRE(kept.size() == RecentTalkers::kNames);
  for (const auto& [name, sum] : kept) CHECK(sum.lan() > kFlows - RecentTalkers::kNames);
  // One that is there goes on counting, however small its flows are.
  const std::string name = kept.begin()->first;
  talkers.add(flow(name + ":1-10.0.2.2:443", 1), now);
  CHECK(talkers.by(TalkersBy::client, now).at(name).flows == 2);
}

}  // namespace
}  // namespace longhaul::flows
