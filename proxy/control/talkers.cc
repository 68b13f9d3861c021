// SPDX-License-Identifier: Apache-2.0
// Walks the live flows once, in slices; flows that start or end meanwhile may be missed until the next call.
#include "proxy/control/talkers.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <map>
#include <vector>

#include "proxy/config/network.h"
#include "proxy/control/flow_queries.h"
#include "proxy/control/views.h"

namespace longhaul::control {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr std::size_t kFlowsPerSlice = 256;  // each costs a text and a look-up

struct Sum {
  std::uint64_t flows = 0;
  flows::FlowBytes bytes;
  std::uint64_t lan() const { return bytes.lan_in + bytes.lan_out; }
};

std::string name_of(const flows::FlowRecord& flow, TalkersBy by) {
  switch (by) {
    case TalkersBy::client:
      return config::unmapped(flow.client.address()).to_string();
    case TalkersBy::server:
      return flow.destination.host.empty() ? config::unmapped(flow.destination.address).to_string()
                                           : flow.destination.host;
    case TalkersBy::port:
      return std::to_string(flow.destination.port);
    case TalkersBy::peer:
      return flow.peer;
  }
  return {};
}

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
  // Named: g++ 12 destroys twice what is awaited inside an initialiser.
  std::function<void(const flows::FlowRecord&)> add = [&](const flows::FlowRecord& flow) {
    Sum& sum = sums[name_of(flow, query.by)];
    ++sum.flows;
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
    list.push_back(json::object{{"name", name}, {"flows", sum.flows}, {"bytes", view(sum.bytes)}});
  }
  co_return json::serialize(json::object{{"talkers", std::move(list)}, {"count", sums.size()}}) + "\n";
}

}  // namespace longhaul::control
