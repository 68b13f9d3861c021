// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/modules.h"

#include <algorithm>
#include <array>

#include "proxy/modules/smb/descriptor.h"

namespace longhaul::modules {

// The only place that names modules.
std::span<const Descriptor* const> descriptors() {
  static constexpr std::array kAll{&smb::kDescriptor};
  return kAll;
}

std::vector<Listed> all(const std::shared_ptr<Memory>& memory, const Resources& resources) {
  std::vector<Listed> list;
  for (const Descriptor* each : descriptors())
    list.push_back({.descriptor = *each, .instance = each->make(resources), .memory = memory});
  return list;
}

const Listed* for_port(List list, std::uint16_t port) {
  const auto found = std::ranges::find_if(list, [port](const Listed& m) {
    return std::ranges::find(m.descriptor.ports, port) != m.descriptor.ports.end();
  });
  return found == list.end() ? nullptr : &*found;
}

const Listed* find(List list, std::string_view name, std::uint64_t version) {
  const auto found = std::ranges::find_if(
      list, [&](const Listed& m) { return m.descriptor.name == name && m.descriptor.version == version; });
  return found == list.end() ? nullptr : &*found;
}

}  // namespace longhaul::modules
