// SPDX-License-Identifier: Apache-2.0
// Walks the flow table by id. Ids only grow, so after the event loop ran, a walk continues after the last id
// that it visited, even if flows were added or removed meanwhile.
#include "proxy/control/flow_queries.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/json/serialize.hpp>
#include <ranges>

#include "proxy/control/flow_views.h"

namespace longhaul::control {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

// Limits between two turns of the event loop: flows examined (tens of nanoseconds each) and flows written
// (microseconds each).
constexpr std::size_t kLooksPerSlice = 2048;
constexpr std::size_t kSearchesPerSlice = 128;  // each needs a text
constexpr std::size_t kViewsPerSlice = 32;
// One request examines at most this many; the next page continues after them.
constexpr std::size_t kLooksPerPage = 65'536;

asio::awaitable<void> let_the_loop_run() {
  co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
}

bool is_found(const std::string& search, const flows::FlowRecord& flow) {
  std::string text = config::unmapped(flow.client.address()).to_string() + ':' +
                     std::to_string(flow.client.port()) + ' ' + flow.destination.to_text() + ' ' + flow.peer +
                     ' ';
  text += flow.reason->code;
  if (flow.module) text.append(" ").append(flow.module->name);
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text.find(search) != std::string::npos;
}

bool wanted(const FlowQuery& query, const flows::FlowRecord& flow) {
  return (!query.peer || *query.peer == flow.peer) && (!query.reason || *query.reason == flow.reason) &&
         (!query.port || *query.port == flow.destination.port) &&
         (!query.client || config::contains(*query.client, flow.client.address())) &&
         (!query.server ||
          (flow.destination.host.empty() && config::contains(*query.server, flow.destination.address))) &&
         (!query.server_name || boost::beast::iequals(*query.server_name, flow.destination.host)) &&
         (query.search.empty() || is_found(query.search, flow));
}

}  // namespace

// Text is appended flow by flow: writing and freeing a JSON tree of a thousand flows would block the event
// loop for milliseconds.
asio::awaitable<std::string> list_flows(const Controlled& daemon, FlowQuery query) {
  const auto& live = daemon.flows().live();
  const LinkFacts links{daemon.status()};
  const auto now = std::chrono::steady_clock::now();
  std::string text = R"({"flows":[)";
  flows::FlowId last = query.after;
  bool more = true;
  for (std::size_t views = 0, looks = 0; views < query.limit && looks < kLooksPerPage;) {
    auto flow = live.upper_bound(last);
    const auto slice_looks = looks + (query.search.empty() ? kLooksPerSlice : kSearchesPerSlice);
    const auto slice_views = std::min(views + kViewsPerSlice, query.limit);
    for (; flow != live.end() && looks < slice_looks && views < slice_views; ++flow) {
      ++looks;
      last = flow->first;
      if (!wanted(query, flow->second)) continue;
      if (views++ > 0) text += ',';
      text += json::serialize(view(flow->second, links, now));
    }
    more = flow != live.end();
    if (!more) break;
    co_await let_the_loop_run();
  }
  text += R"(],"next":)" + (more ? std::to_string(last) : "null") + R"(,"live":)" +
          std::to_string(live.size()) + "}\n";
  co_return text;
}

asio::awaitable<void> for_each_live(const Controlled& daemon, std::size_t per_slice,
                                    std::function<void(const flows::FlowRecord&)> look) {
  const auto& live = daemon.flows().live();
  for (flows::FlowId last = 0;;) {
    auto flow = live.upper_bound(last);
    for (std::size_t looks = 0; flow != live.end() && looks < per_slice; ++flow, ++looks) {
      last = flow->first;
      look(flow->second);
    }
    if (flow == live.end()) break;
    co_await let_the_loop_run();
  }
}

asio::awaitable<std::optional<flows::FlowId>> find_live(const Controlled& daemon, flows::Tuple tuple) {
  std::optional<flows::FlowId> newest;
  std::function<void(const flows::FlowRecord&)> look = [&](const flows::FlowRecord& flow) {
    if (matches(tuple, flow.client, flow.destination)) newest = flow.id;
  };
  co_await for_each_live(daemon, kLooksPerSlice, look);
  if (newest && !daemon.flows().live().contains(*newest)) newest.reset();  // it has ended meanwhile
  co_return newest;
}

const flows::FlowTable::Ended* find_ended(const flows::FlowTable& flows, const flows::Tuple& tuple) {
  const auto newest_first = flows.ended() | std::views::reverse;
  const auto found = std::ranges::find_if(newest_first, [&tuple](const auto& flow) {
    return matches(tuple, flow.record.client, flow.record.destination);
  });
  return found == newest_first.end() ? nullptr : &*found;
}

const flows::FlowTable::Ended* find_ended(const flows::FlowTable& flows, flows::FlowId id) {
  const auto found =
      std::ranges::find_if(flows.ended(), [id](const auto& flow) { return flow.record.id == id; });
  return found == flows.ended().end() ? nullptr : &*found;
}

}  // namespace longhaul::control
