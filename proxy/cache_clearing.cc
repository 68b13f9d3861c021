// SPDX-License-Identifier: Apache-2.0
#include "proxy/cache_clearing.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "proxy/log/log.h"

namespace longhaul {
namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<control::Cleared> clear_cache(asio::io_context& io, ModuleHost& modules, PeerLinks& links,
                                              control::ClearWhat what) {
  control::Cleared cleared;
  cleared.object_bytes = modules.clear_cache();
  const bool is_all = what != control::ClearWhat::objects;
  if (is_all) {
    cleared.memory_bytes = links.clear_memory();
    cleared.disk_bytes = links.disk().clear();
    log::info("cache_cleared", {{"memory_bytes", cleared.memory_bytes},
                                {"disk_bytes", cleared.disk_bytes},
                                {"object_bytes", cleared.object_bytes}});
  } else {
    log::info("cache_cleared", {{"object_bytes", cleared.object_bytes}});
  }
  // Waits only a round trip or two for the peers' results: the peers clear their caches even if they respond
  // later.
  asio::steady_timer timer(io);
  const auto latest = std::chrono::steady_clock::now() + 2s;
  auto said = [](const auto& link) { return !link->usable() || link->dictionary().cleared_by_peer(); };
  auto all_said = [&] {
    if (modules.cleared_key() == cache::ClearedKey::pending) return false;
    return !is_all || (std::ranges::all_of(links.all(), said) &&
                       links.disk().cleared_key() != cache::ClearedKey::pending);
  };
  while (!all_said() && std::chrono::steady_clock::now() < latest) {
    timer.expires_after(5ms);
    co_await timer.async_wait(asio::use_awaitable);
  }
  cleared.object_key = modules.cleared_key();
  if (!is_all) co_return cleared;
  cleared.disk_key = links.disk().cleared_key();
  for (const auto& link : links.all())
    cleared.peers.push_back({link->peer().name, link->usable() ? link->dictionary().cleared_by_peer()
                                                               : std::optional<std::uint64_t>()});
  co_return cleared;
}

}  // namespace longhaul
