// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/recognition.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace longhaul::flows {
namespace asio = boost::asio;
using asio::ip::tcp;
using modules::Recognised;
namespace {

constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);
// If the first bytes are too few to decide, they stay in the socket, which therefore stays readable: wait
// this long for more.
constexpr std::chrono::milliseconds kForMoreBytes{2};

const config::ModuleSettings* settings_of(const modules::Listed& module, const ModuleSettings& settings) {
  const auto found = std::ranges::find(settings, module.descriptor.name, &config::ModuleSettings::name);
  return found == settings.end() ? nullptr : &*found;
}

bool has_port(const modules::Listed& module, const ModuleSettings& settings, std::uint16_t port) {
  const auto* own = settings_of(module, settings);
  const std::span<const std::uint16_t> ports = own ? std::span(own->ports) : module.descriptor.ports;
  return std::ranges::find(ports, port) != ports.end();
}

bool at_any_port(const modules::Listed& module, const ModuleSettings& settings) {
  const auto* own = settings_of(module, settings);
  return own && own->any_port && module.descriptor.recognise;
}

// Shows the received bytes to the candidates, and removes those that do not match.
const modules::Listed* ask(Candidates& candidates, Bytes first) {
  std::erase_if(candidates, [&](const modules::Listed* each) {
    return each->descriptor.recognise(first) == Recognised::no;
  });
  const auto found = std::ranges::find_if(candidates, [&](const modules::Listed* each) {
    return each->descriptor.recognise(first) == Recognised::yes;
  });
  return found == candidates.end() ? nullptr : *found;
}

}  // namespace

const modules::Listed* module_at(modules::List list, const ModuleSettings& settings, std::uint16_t port) {
  const auto found =
      std::ranges::find_if(list, [&](const modules::Listed& module) { return has_port(module, settings, port); });
  return found == list.end() ? nullptr : &*found;
}

bool may_be_at(const modules::Listed& module, const ModuleSettings& settings, std::uint16_t port) {
  return has_port(module, settings, port) || at_any_port(module, settings);
}

Candidates recognisers(modules::List list, const ModuleSettings& settings, const config::Features& features) {
  Candidates candidates;
  for (const modules::Listed& module : list)
    if (at_any_port(module, settings) && features.modules.value(module.descriptor.name) != 0)
      candidates.push_back(&module);
  return candidates;
}

asio::awaitable<const modules::Listed*> recognise(tcp::socket& client, Candidates candidates) {
  using namespace asio::experimental::awaitable_operators;
  const auto until = std::chrono::steady_clock::now() + kFirstBytesPatience;
  asio::steady_timer timer(client.get_executor());
  std::array<std::byte, modules::kMostFirstBytes> first;
  timer.expires_at(until);
  // Waits for the first of both; recv() reports the result.
  (void)co_await (client.async_wait(tcp::socket::wait_read, kNoThrow) || timer.async_wait(kNoThrow));
  while (!candidates.empty()) {
    const ssize_t size = ::recv(client.native_handle(), first.data(), first.size(), MSG_PEEK | MSG_DONTWAIT);
    if (size <= 0) co_return nullptr;
    if (const auto* found = ask(candidates, {first.data(), static_cast<std::size_t>(size)})) co_return found;
    if (candidates.empty() || std::chrono::steady_clock::now() >= until) co_return nullptr;
    timer.expires_after(kForMoreBytes);
    co_await timer.async_wait(kNoThrow);
  }
  co_return nullptr;
}

}  // namespace longhaul::flows
