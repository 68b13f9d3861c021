// SPDX-License-Identifier: Apache-2.0
// Queries about many flows, answered page by page and in slices, so that ten thousand flows never block the
// event loop. api.cc parses the URL.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <string>

#include "proxy/config/network.h"
#include "proxy/control/controlled.h"

namespace longhaul::control {

struct FlowQuery {
  static constexpr std::size_t kMostFlows = 1000;  // in one page

  std::size_t limit = 100;
  flows::FlowId after = 0;          // only flows with a higher id
  std::optional<std::string> peer;  // "" selects flows outside the link
  std::optional<flows::Reason> reason;
  std::optional<std::uint16_t> port;  // of the destination
  std::optional<config::Network> client;
  std::optional<config::Network> server;
  std::optional<std::string> server_name;
  std::string search;  // lower case; matches anywhere in the addresses or names of a flow; empty: any
};

// JSON text: {"flows": […], "next": id or null, "live": n}. If "next" is an id, there may be more flows after
// it; a page may contain fewer flows than requested, or none, and still have a next.
boost::asio::awaitable<std::string> list_flows(const Controlled& daemon, FlowQuery query);

// Calls `look` for each live flow, in slices of this many flows, between which the event loop runs. A flow
// that ends meanwhile may be missed.
boost::asio::awaitable<void> for_each_live(const Controlled& daemon, std::size_t per_slice,
                                           std::function<void(const flows::FlowRecord&)> look);

// The newest live flow with these addresses.
boost::asio::awaitable<std::optional<flows::FlowId>> find_live(const Controlled& daemon, flows::Tuple tuple);

// The newest of the recently ended flows that match; null if there is none.
const flows::FlowTable::Ended* find_ended(const flows::FlowTable& flows, const flows::Tuple& tuple);
const flows::FlowTable::Ended* find_ended(const flows::FlowTable& flows, flows::FlowId id);

}  // namespace longhaul::control
