// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/modules.h"

#include <algorithm>

#include "proxy/modules/plaintext.h"

namespace longhaul::modules {

const config::FeatureTable& feature_table() {
  static const config::FeatureTable table = [] {
    config::FeatureTable of_all;
    for (const Descriptor* each : descriptors()) of_all.add(each->features);
    return of_all;
  }();
  return table;
}

std::vector<Listed> all(const std::shared_ptr<Memory>& memory, const Resources& resources) {
  Resources given = resources;
  given.memory = memory;
  std::vector<Listed> list;
  for (const Descriptor* each : descriptors())
    list.push_back({.descriptor = *each, .instance = each->make(given), .memory = memory});
  PlaintextReaders readers;
  for (const Listed& each : list)
    if (each.descriptor.reads_plaintext)
      readers.push_back({.recognise = each.descriptor.recognise,
                         .may_be_server = each.descriptor.may_be_server,
                         .instance = each.instance});
  for (const Listed& each : list)
    if (each.descriptor.decrypts) each.instance->use_plaintext_readers(readers);
  return list;
}

const Listed* find(List list, std::string_view name, std::uint64_t version) {
  const auto found = std::ranges::find_if(
      list, [&](const Listed& m) { return m.descriptor.name == name && m.descriptor.version == version; });
  return found == list.end() ? nullptr : &*found;
}

}  // namespace longhaul::modules
