// SPDX-License-Identifier: Apache-2.0
// Which application module a flow of this site's client is offered: by the server's port or, where the
// configuration wants that, by the first bytes of the client. module_agreement.h decides whether it uses the
// module.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/modules/modules.h"

namespace longhaul::flows {

using ModuleSettings = std::vector<config::ModuleSettings>;

// The module that has the port. Null: none.
const modules::Listed* module_at(modules::List list, const ModuleSettings& settings, std::uint16_t port);
// Whether flows to that port may be the module's: by the port, or by what they begin with.
bool may_be_at(const modules::Listed& module, const ModuleSettings& settings, std::uint16_t port);

// Those that are to be asked what they say of a flow's first bytes.
using Candidates = std::vector<const modules::Listed*>;
Candidates recognisers(modules::List list, const ModuleSettings& settings, const config::Features& features);

// Waits for the client's first bytes, which stay in the socket, for at most kFirstBytesPatience: in some protocols the
// server speaks first. The first module that recognises them; null: none does.
inline constexpr std::chrono::milliseconds kFirstBytesPatience{20};
boost::asio::awaitable<const modules::Listed*> recognise(boost::asio::ip::tcp::socket& client, Candidates candidates);

}  // namespace longhaul::flows
