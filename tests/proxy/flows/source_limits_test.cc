// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/source_limits.h"

#include <catch2/catch.hpp>
#include <string>

using namespace longhaul;
using namespace longhaul::flows;
using boost::asio::ip::make_address;

namespace {

std::vector<std::string> crowded(const SourceLimits& sources) {
  std::vector<std::string> texts;
  for (const auto& source : sources.crowded()) texts.push_back(config::to_text(source));
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("by default one address may have a quarter of all flows") {
  config::Limits limits;
  CHECK(limits.flows_of_one_source() == 4096);
  limits.flows = 3;
  CHECK(limits.flows_of_one_source() == 1);
  limits.flows_per_source = 2;
  CHECK(limits.flows_of_one_source() == 2);
}

TEST_CASE("a source counts as over its limit until it is an eighth below") {
  const config::Limits limits{.flows = 100, .flows_per_source = 16};
  SourceLimits sources(limits);
  const auto client = make_address("10.0.0.1"), mapped = make_address("::ffff:10.0.0.1");
  for (int i = 0; i < 15; ++i) CHECK_FALSE(sources.add(i % 2 == 0 ? client : mapped));
  CHECK_FALSE(sources.at_limit(client));
  CHECK(sources.add(client));
  CHECK(sources.at_limit(mapped));
  CHECK_FALSE(sources.at_limit(make_address("10.0.0.2")));
  CHECK(crowded(sources) == Texts{"10.0.0.1/32"});
  CHECK_FALSE(sources.remove(client));
  CHECK_FALSE(sources.at_limit(client));
  CHECK(crowded(sources) == Texts{"10.0.0.1/32"});
  CHECK_FALSE(sources.remove(mapped));
  CHECK(sources.remove(client));
  CHECK(crowded(sources).empty());
  for (int flows = 13; flows < 31; ++flows) sources.add(client);
  CHECK_FALSE(sources.at_limit(client, 2));
  sources.add(client);
  CHECK(sources.at_limit(client, 2));
}

TEST_CASE("new limits apply at once to existing flows") {
  config::Limits limits{.flows = 100, .flows_per_source = 4};
  SourceLimits sources(limits);
  for (int i = 0; i < 3; ++i) sources.add(make_address("10.0.0.1"));
  for (int i = 0; i < 3; ++i) sources.add(make_address("fd00::" + std::to_string(i)));
  limits.flows_per_source = 1;
  sources.limits_changed();
  CHECK(crowded(sources) == Texts{"10.0.0.1/32", "fd00::/64", "fd00::/128", "fd00::1/128", "fd00::2/128"});
  limits.flows_per_source = 50;
  sources.limits_changed();
  CHECK(crowded(sources).empty());
}

TEST_CASE("the addresses of an IPv6 /64 may together have twice as many flows as one of them") {
  const config::Limits limits{.flows = 100, .flows_per_source = 4};
  SourceLimits sources(limits);
  for (int i = 1; i <= 7; ++i) CHECK_FALSE(sources.add(make_address("fd00::" + std::to_string(i))));
  CHECK(sources.add(make_address("fd00::8")));
  CHECK(crowded(sources) == Texts{"fd00::/64"});
  CHECK(sources.at_limit(make_address("fd00::9")));
  CHECK_FALSE(sources.at_limit(make_address("fd00:0:0:1::9")));
  for (int i = 1; i <= 8; ++i) sources.remove(make_address("fd00::" + std::to_string(i)));
  for (int i = 0; i < 4; ++i) sources.add(make_address("fd00::1"));
  CHECK(crowded(sources) == Texts{"fd00::1/128"});
  CHECK_FALSE(sources.at_limit(make_address("fd00::2")));
}
