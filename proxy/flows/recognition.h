// SPDX-License-Identifier: Apache-2.0
// Finds the application module for a flow of this site's client: by the server's port or, where configured,
// by the client's first bytes. module_agreement.h decides whether it uses the module.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/modules/modules.h"

namespace longhaul::flows {

using ModuleSettings = std::vector<config::ModuleSettings>;

// The module for the port; null if there is none.
const modules::Listed* module_at(modules::List list, const ModuleSettings& settings, std::uint16_t port);
// Whether the module may handle flows to that port: by the port, or by their first bytes.
bool may_be_at(const modules::Listed& module, const ModuleSettings& settings, std::uint16_t port);

// The modules that examine a flow's first bytes.
using Candidates = std::vector<const modules::Listed*>;
Candidates recognisers(modules::List list, const ModuleSettings& settings, const config::Features& features);

// Waits for the client's first bytes, which stay in the socket, for at most kFirstBytesPatience: in some
// protocols the server sends first. Returns the first module that recognises them; null if none does.
inline constexpr std::chrono::milliseconds kFirstBytesPatience{20};
boost::asio::awaitable<const modules::Listed*> recognise(boost::asio::ip::tcp::socket& client, Candidates candidates);

}  // namespace longhaul::flows
