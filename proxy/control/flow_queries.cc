// SPDX-License-Identifier: Apache-2.0
// Walks the flow table by id. Ids only grow, so a walk that let the loop run goes on after the id it stopped
// at, whatever came and went meanwhile.
#include "proxy/control/flow_queries.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/serialize.hpp>
#include <ranges>

#include "proxy/control/views.h"

namespace longhaul::control {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

// Between two turns of the loop: flows looked at (tens of nanoseconds each) and flows written (microseconds
// each).
constexpr std::size_t kLooksPerSlice = 2048;
constexpr std::size_t kViewsPerSlice = 32;
// One request looks at no more than this; the next page goes on from there.
constexpr std::size_t kLooksPerPage = 65'536;

asio::awaitable<void> let_the_loop_run() {
  co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
}

bool wanted(const FlowQuery& query, const flows::FlowRecord& flow) {
  return (!query.peer || *query.peer == flow.peer) && (!query.reason || *query.reason == flow.reason) &&
         (!query.port || *query.port == flow.destination.port);
}

}  // namespace

// Text is appended flow by flow: a tree of a thousand flows would cost the loop milliseconds to write and to
// free.
asio::awaitable<std::string> list_flows(const Controlled& daemon, FlowQuery query) {
  const auto& live = daemon.flows().live();
  const LinkFacts links{daemon.status()};
  const auto now = std::chrono::steady_clock::now();
  std::string text = R"({"flows":[)";
  flows::FlowId last = query.after;
  bool more = true;
  for (std::size_t views = 0, looks = 0; views < query.limit && looks < kLooksPerPage;) {
    auto flow = live.upper_bound(last);
    const auto slice_looks = looks + kLooksPerSlice;
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

asio::awaitable<std::optional<flows::FlowId>> find_live(const Controlled& daemon, flows::Tuple tuple) {
  const auto& live = daemon.flows().live();
  std::optional<flows::FlowId> newest;
  for (flows::FlowId last = 0;;) {
    auto flow = live.upper_bound(last);
    for (std::size_t looks = 0; flow != live.end() && looks < kLooksPerSlice; ++flow, ++looks) {
      last = flow->first;
      if (matches(tuple, flow->second.client, flow->second.destination)) newest = last;
    }
    if (flow == live.end()) break;
    co_await let_the_loop_run();
  }
  if (newest && !live.contains(*newest)) newest.reset();  // it ended while the loop ran
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
