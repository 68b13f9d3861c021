// SPDX-License-Identifier: Apache-2.0
// Traffic on the line: flows that are live, or ended in the last hour, summed by client, server, port or
// peer, the largest first.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/control/controlled.h"

namespace longhaul::control {

using flows::TalkersBy;
std::optional<TalkersBy> talkers_by(std::string_view text);

struct TalkersQuery {
  static constexpr std::size_t kMost = 1000;
  TalkersBy by = TalkersBy::client;
  std::size_t limit = 20;
};

// JSON text: {"talkers": […], "count": how many there are}.
boost::asio::awaitable<std::string> list_talkers(const Controlled& daemon, TalkersQuery query);

}  // namespace longhaul::control
