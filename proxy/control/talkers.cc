// SPDX-License-Identifier: Apache-2.0
// Walks the live flows once, in slices. A flow that starts or ends meanwhile may be missed until the next
// call.
#include "proxy/control/talkers.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <map>
#include <vector>

#include "proxy/control/flow_queries.h"
#include "proxy/control/flow_views.h"

namespace longhaul::control {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr std::size_t kFlowsPerSlice = 256;  // each needs a text and a look-up

struct Sum {
  std::uint64_t live = 0, ended = 0;
  flows::FlowBytes bytes;
  std::uint64_t lan() const { return bytes.lan_in + bytes.lan_out; }
};

}  // namespace

std::optional<TalkersBy> talkers_by(std::string_view text) {
  if (text == "client") return TalkersBy::client;
  if (text == "server") return TalkersBy::server;
  if (text == "port") return TalkersBy::port;
  if (text == "peer") return TalkersBy::peer;
  return std::nullopt;
}

asio::awaitable<std::string> list_talkers(const Controlled& daemon, TalkersQuery query) {
  std::map<std::string, Sum> sums;
  for (const auto& [name, sum] : daemon.recent_talkers().by(query.by, std::chrono::steady_clock::now()))
    sums[name] = {.ended = sum.flows, .bytes = sum.bytes};
  // A named variable: g++ 12 destroys an object twice that is created inside a co_await expression.
  std::function<void(const flows::FlowRecord&)> add = [&](const flows::FlowRecord& flow) {
    Sum& sum = sums[flows::talker_name(flow, query.by)];
    ++sum.live;
    sum.bytes += flow.bytes;
  };
  co_await for_each_live(daemon, kFlowsPerSlice, add);
  std::vector<const std::pair<const std::string, Sum>*> largest;
  largest.reserve(sums.size());
  for (const auto& each : sums) largest.push_back(&each);
  const auto shown = std::min(query.limit, largest.size());
  std::ranges::partial_sort(largest, largest.begin() + static_cast<std::ptrdiff_t>(shown), std::greater{},
                            [](const auto* each) { return each->second.lan(); });
  json::array list;
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& [name, sum] = *largest[i];
    list.push_back(json::object{{"name", name}, {"flows", sum.live}, {"ended", sum.ended}, {"bytes", view(sum.bytes)}});
  }
  co_return json::serialize(json::object{{"talkers", std::move(list)}, {"count", sums.size()}}) + "\n";
}

}  // namespace longhaul::control
