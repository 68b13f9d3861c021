// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/modules.h"

#include <algorithm>
#include <array>

namespace longhaul::modules {
namespace {

// One line for each module:
//   Listed{"smb", 1, kSmbPorts, &config::Features::smb, &smb::make_near, &smb::make_far},
constexpr std::array<Listed, 0> kAll{};

}  // namespace

List all() { return kAll; }

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
