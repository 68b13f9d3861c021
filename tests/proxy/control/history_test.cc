// SPDX-License-Identifier: Apache-2.0
#include "proxy/control/history.h"

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>

#include "proxy/control/history_view.h"
#include "proxy/control/http_client.h"

namespace longhaul::control {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kNow = 1'800'000'000;  // the first second of an hour

History::Slot carried(std::uint64_t bytes, std::uint64_t flows = 1) {
  return {.bytes = {bytes, 2 * bytes, 3 * bytes, 4 * bytes}, .most_flows = flows, .samples = 1};
}

std::uint64_t sum(const History::Series& series) {
  std::uint64_t all = 0;
  for (std::uint64_t i = 0; i < series.kept() && i <= series.newest(); ++i)
    all += series.at(series.newest() - i).bytes.lan_in;
  return all;
}

TEST_CASE("traffic of a second is counted in that second, its minute and its hour") {
  History history;
  for (std::uint64_t i = 0; i < 120; ++i) history.add(kNow + i, carried(10, i));
  const auto& [seconds, minutes, hours] = history.series();
  CHECK(seconds.at(seconds.newest()) == carried(10, 119));
  CHECK(minutes.at(minutes.newest()).bytes == flows::FlowBytes{600, 1200, 1800, 2400});
  CHECK(minutes.at(minutes.newest() - 1).most_flows == 59);
  CHECK(minutes.at(minutes.newest() - 2) == History::Slot{});
  CHECK(hours.at(hours.newest()).samples == 120);
  CHECK(hours.newest() == kNow / 3600);
}

TEST_CASE("a ring keeps as many intervals as it has places, and none from before a longer pause") {
  History history;
  for (std::uint64_t i = 0; i < 1000; ++i) history.add(kNow + i, carried(1));
  CHECK(sum(history.series()[0]) == 600);
  CHECK(sum(history.series()[1]) == 1000);
  history.add(kNow + 1000 + 7200, carried(5));
  CHECK(sum(history.series()[0]) == 5);
  CHECK(sum(history.series()[1]) == 1005);
  CHECK(sum(history.series()[2]) == 1005);
}

TEST_CASE("setting the clock back or far ahead loses history and does no other harm") {
  History history;
  for (std::uint64_t i = 0; i < 100; ++i) history.add(kNow + i, carried(1));
  history.add(kNow + 49, carried(7));
  CHECK(history.series()[0].newest() == kNow + 49);
  CHECK(sum(history.series()[0]) == 50 + 7);  // those after it are forgotten
  history.add(0, carried(9));
  CHECK(sum(history.series()[0]) == 9);
  history.add(~0ull, carried(9));  // no clock says so
  CHECK(history.series()[0].newest() == 0);
  history.add(kNow, carried(3));
  CHECK(sum(history.series()[0]) == 3);
}

TEST_CASE("a history file is read back, and a damaged one is refused") {
  History history;
  for (std::uint64_t i = 0; i < 5000; i += 7) history.add(kNow + i, carried(i, i % 13));
  const std::string text = history.text();
  CHECK(text.size() < History::kMostBytes);
  const auto again = History::parse(text);
  REQUIRE(again);
  CHECK(again->text() == text);
  for (std::size_t at :
       {std::size_t{0}, std::size_t{18}, std::size_t{30}, text.size() / 2, text.size() - 1}) {
    auto damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    CHECK_FALSE(History::parse(damaged));
  }
  CHECK_FALSE(History::parse(""));
  CHECK_FALSE(History::parse("longhaul history 1\n"));
  CHECK_FALSE(History::parse(text.substr(0, text.size() - 8)));
  CHECK_FALSE(History::parse(text + text));
}

TEST_CASE("the API returns the intervals of a step, with null where no daemon ran") {
  RunningApi api;
  api.daemon.past.add(kNow, carried(1, 2));
  api.daemon.past.add(kNow + 2, carried(5));
  api.start();
  auto answer = get(api, "/v1/history?step=1").json();
  CHECK(answer.at("step_s") == 1u);
  CHECK(answer.at("from_s") == kNow + 2 - 599);
  const auto& slots = answer.at("slots").as_array();
  REQUIRE(slots.size() == 600);
  CHECK(slots[597] == boost::json::parse("[1,2,3,4,2]"));
  CHECK(slots[598].is_null());
  CHECK(slots[599].at(0) == 5u);
  answer = get(api, "/v1/history?step=1&since=" + std::to_string(kNow + 1)).json();
  CHECK(answer.at("from_s") == kNow + 1);
  CHECK(answer.at("slots").as_array().size() == 2);
  CHECK(get(api, "/v1/history?step=60").json().at("slots").as_array().size() == 1440);
  CHECK(get(api, "/v1/history?step=3600&since=99999999999").json().at("slots").as_array().empty());
  for (const auto* wrong : {"step=2", "step=0", "step=18446744073709551615", "step=x", "since=-1", "from=1"})
    CHECK(get(api, std::string("/v1/history?") + wrong).status == 400);
}

TEST_CASE("a history without a sample has intervals without a daemon") {
  RunningApi api;
  api.start();
  CHECK(get(api, "/v1/history").json().at("slots").as_array().size() == 1);
}

}  // namespace
}  // namespace longhaul::control
