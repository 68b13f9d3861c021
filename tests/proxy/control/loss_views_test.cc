// SPDX-License-Identifier: Apache-2.0
// What the control API says about lost writes, over real HTTP, against a fake daemon with a module that lost
// some.
#include "proxy/control/views.h"

#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <memory>

#include "proxy/control/http_client.h"
#include "proxy/flows/ends.h"
#include "proxy/modules/smb/loss_reports.h"

using namespace longhaul::control;
namespace json = boost::json;

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
