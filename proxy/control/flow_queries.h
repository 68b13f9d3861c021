// SPDX-License-Identifier: Apache-2.0
// Questions about many flows, answered page by page and in slices, so that ten thousand flows never block
// the loop that carries them. api.cc parses the URL.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>

#include "proxy/control/controlled.h"

namespace longhaul::control {

struct FlowQuery {
  static constexpr std::size_t kMostFlows = 1000;  // in one page

  std::size_t limit = 100;
  flows::FlowId after = 0;          // only flows with a higher id
  std::optional<std::string> peer;  // "" selects flows outside the link
  std::optional<flows::Reason> reason;
  std::optional<std::uint16_t> port;  // of the destination
};

// JSON text: {"flows": […], "next": id or null, "live": n}. While "next" is an id there may be more after it;
// a page may hold fewer flows than asked for, or none, and still have a next.
boost::asio::awaitable<std::string> list_flows(const Controlled& daemon, FlowQuery query);

// The newest live flow between these ends.
boost::asio::awaitable<std::optional<flows::FlowId>> find_live(const Controlled& daemon, flows::Tuple tuple);

// The newest of the flows that ended lately, or nothing.
const flows::FlowTable::Ended* find_ended(const flows::FlowTable& flows, const flows::Tuple& tuple);
const flows::FlowTable::Ended* find_ended(const flows::FlowTable& flows, flows::FlowId id);

}  // namespace longhaul::control
