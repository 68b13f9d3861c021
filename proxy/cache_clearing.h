// SPDX-License-Identifier: Apache-2.0
// The command `clear-cache`: drops stored responses and dictionaries, here and through the links at the
// peers.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "proxy/control/controlled.h"
#include "proxy/module_host.h"
#include "proxy/peer_links.h"

namespace longhaul {

// Clears this daemon's caches at once, then waits for the peers' results, up to a limit. All references
// outlive the coroutine.
boost::asio::awaitable<control::Cleared> clear_cache(boost::asio::io_context& io, ModuleHost& modules,
                                                     PeerLinks& links, control::ClearWhat what);

}  // namespace longhaul
