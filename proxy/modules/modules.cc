// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/modules.h"

#include <algorithm>

#include "proxy/modules/smb/guard.h"
#include "proxy/modules/smb/module.h"

namespace longhaul::modules {

std::vector<Listed> all(std::shared_ptr<Memory> memory, std::uint64_t ahead_bytes,
                        std::shared_ptr<smb::LostWrites> lost_writes) {
  std::vector<Listed> list;
  // One entry for each module, with what its flows share.
  const auto site = std::make_shared<smb::Site>();
  site->lost = std::move(lost_writes);
  site->ahead->most_bytes = std::min(site->ahead->most_bytes, ahead_bytes);
  const auto smb_half = [site](smb::Side side) -> Maker {
    return [=](const Ends& ends) {
      return std::make_unique<smb::SmbModule>(side, ends, *site);
    };
  };
  const auto smb_guard = [site](const Ends& ends) -> std::unique_ptr<Guard> {
    if (!site->lost->any(ends)) return nullptr;
    return std::make_unique<smb::Guard>(ends, site->lost);
  };
  list.push_back({.name = "smb",
                  .version = smb::kModuleVersion,
                  .ports = {445, 139},
                  .feature = &config::Features::smb,
                  .make_near = smb_half(smb::Side::near),
                  .make_far = smb_half(smb::Side::far),
                  .make_guard = smb_guard,
                  .guarded = [site] { return site->lost->all_ends(); },
                  .on_guarded = [site](std::function<void()> call) { site->lost->on_change(std::move(call)); },
                  .on_given_up = [site](std::function<void()> call) { site->lost->on_given_up(std::move(call)); },
                  .memory = std::move(memory),
                  .ahead_bytes = [site] { return site->ahead->held_bytes; }});
  return list;
}

const Listed* for_port(List list, std::uint16_t port) {
  const auto found = std::ranges::find_if(
      list, [port](const Listed& m) { return std::ranges::find(m.ports, port) != m.ports.end(); });
  return found == list.end() ? nullptr : &*found;
}

const Listed* find(List list, std::string_view name, std::uint64_t version) {
  const auto found =
      std::ranges::find_if(list, [&](const Listed& m) { return m.name == name && m.version == version; });
  return found == list.end() ? nullptr : &*found;
}

}  // namespace longhaul::modules
