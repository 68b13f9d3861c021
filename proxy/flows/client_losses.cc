// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/client_losses.h"

#include <algorithm>

#include "proxy/flows/ends.h"

namespace longhaul::flows {
namespace asio = boost::asio;

bool ClientLosses::any_module_at(std::uint16_t port) const {
  return std::ranges::any_of(
      modules_, [&](const modules::Listed& module) { return may_be_at(module, settings_, port); });
}

std::vector<modules::Losses*> ClientLosses::of(std::uint16_t port) const {
  std::vector<modules::Losses*> all;
  for (const modules::Listed& module : modules_)
    if (may_be_at(module, settings_, port))
      if (modules::Losses* losses = module.instance->losses()) all.push_back(losses);
  return all;
}

std::optional<Reason> ClientLosses::why_guarded(const asio::ip::address& client,
                                                const Destination& destination) const {
  for (modules::Losses* losses : of(destination.port))
    if (const auto guard = losses->make_guard(ends_of(client, destination)))
      if (const auto why = guard->reason()) return why;
  return std::nullopt;
}

ClientLosses::Guarding ClientLosses::make_guard(const modules::Ends& ends) const {
  for (const modules::Listed& module : modules_) {
    if (!may_be_at(module, settings_, ends.server_port)) continue;
    modules::Losses* losses = module.instance->losses();
    if (auto guard = losses ? losses->make_guard(ends) : nullptr)
      return {std::move(guard), module.memory.get()};
  }
  return {};
}

std::vector<std::shared_ptr<void>> ClientLosses::unguarded(const asio::ip::address& client,
                                                           const Destination& destination) const {
  std::vector<std::shared_ptr<void>> held;
  for (modules::Losses* losses : of(destination.port))
    held.push_back(losses->unguarded(ends_of(client, destination)));
  return held;
}

bool ClientLosses::told_by_reset(const modules::Ends& ends) const {
  bool is_told = false;
  for (modules::Losses* losses : of(ends.server_port)) is_told |= losses->told_by_reset(ends);
  return is_told;
}

}  // namespace longhaul::flows
