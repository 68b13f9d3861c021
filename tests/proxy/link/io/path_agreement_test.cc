// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/path_agreement.h"

#include <spdlog/sinks/ostream_sink.h>

#include <catch2/catch.hpp>
#include <sstream>

#include "proxy/log/log.h"

using namespace longhaul::link;
namespace config = longhaul::config;

namespace {

using AgreedPaths = std::vector<UdpTerms::Path>;

std::vector<config::PeerPath> paths_named(std::initializer_list<const char*> names) {
  std::vector<config::PeerPath> paths;
  for (const char* name : names) paths.push_back({.name = name});
  return paths;
}

// "number:name" of each.
std::string text_of_paths(const AgreedPaths& paths) {
  std::string text;
  for (const auto& path : paths)
    text += (text.empty() ? "" : " ") + std::to_string(path.number) + ":" + path.name;
  return text;
}

}  // namespace

TEST_CASE("the acceptor answers the names that it has, by the numbers of the offer") {
  const auto own = paths_named({"lte", "dsl", "fibre"});
  CHECK(text_of_paths(PathAgreement::to_answer({"dsl", "radio", "lte"}, own, nullptr)) == "0:dsl 2:lte");
  CHECK(PathAgreement::to_answer({}, own, nullptr).empty());
  CHECK(PathAgreement::to_answer({"dsl"}, {}, nullptr).empty());
}

TEST_CASE("the dialler uses what was answered of its offer, whatever the order, and no other name") {
  const AgreedPaths offer{{0, "dsl", nullptr, {}}, {1, "radio", nullptr, {}}, {2, "lte", nullptr, {}}};
  CHECK(text_of_paths(PathAgreement::answered(offer, {"lte", "fibre", "dsl"})) == "0:dsl 2:lte");
  CHECK(PathAgreement::answered(offer, {}).empty());
}

TEST_CASE("names that one side does not have are reported once, until others are missing") {
  config::Peer peer;
  peer.name = "branch";
  peer.paths = paths_named({"dsl", "lte"});
  const AgreedPaths both{{0, "dsl", nullptr, {}}, {1, "lte", nullptr, {}}}, one{both.front()};
  PathAgreement agreement;
  const auto reports = [&](const AgreedPaths& agreed) {
    std::stringstream text;
    {
      const longhaul::log::Session session({}, std::make_shared<spdlog::sinks::ostream_sink_mt>(text));
      agreement.note(peer, agreed);
    }
    return !text.str().empty();
  };
  CHECK_FALSE(reports(both));
  CHECK(reports(one));
  CHECK_FALSE(reports(one));
  CHECK(reports({}));
  CHECK_FALSE(reports(both));
  CHECK(reports(one));
}
