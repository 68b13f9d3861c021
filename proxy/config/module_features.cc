// SPDX-License-Identifier: Apache-2.0
// Linear searches: a program has a handful of rows.
#include "proxy/config/module_features.h"

#include <algorithm>
#include <cassert>

namespace longhaul::config {
namespace {

const FeatureTable kNoModules;

}  // namespace

void FeatureTable::add(std::span<const ModuleFeature> rows) {
  for (const ModuleFeature& row : rows) {
    assert(row.name.size() <= kMaxFeatureNameBytes && !find(row.name) && rows_.size() < kMost);
    assert(row.values.size() >= 2 && row.values.front() == "false" && row.standard < row.values.size());
    assert(row.part_of.empty() || find(row.part_of));
    rows_.push_back(row);
  }
}

std::optional<std::size_t> FeatureTable::find(std::string_view name) const {
  const auto found = std::ranges::find(rows_, name, &ModuleFeature::name);
  if (found == rows_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - rows_.begin());
}

ModuleFeatures::ModuleFeatures() : table_(&kNoModules) {}

ModuleFeatures ModuleFeatures::standard(const FeatureTable& table) {
  ModuleFeatures features(table);
  for (std::size_t row = 0; row < table.rows().size(); ++row) features.set(row, table.rows()[row].standard);
  return features;
}

std::uint8_t ModuleFeatures::value(std::string_view name) const {
  const auto row = table_->find(name);
  return row ? values_[*row] : std::uint8_t{0};
}

ModuleFeatures meet(const ModuleFeatures& asked, const ModuleFeatures& allowed) {
  const bool same_table = &asked.table() == &allowed.table();
  ModuleFeatures both(asked.table());
  for (std::size_t row = 0; row < asked.table().rows().size(); ++row)
    both.set(row, std::min(asked[row], same_table ? allowed[row] : allowed.value(asked.table().rows()[row].name)));
  return both;
}

ModuleFeatures without_idle_parts(ModuleFeatures features) {
  const auto rows = features.table().rows();
  for (std::size_t row = 0; row < rows.size(); ++row)
    if (!rows[row].part_of.empty() && features.value(rows[row].part_of) == 0) features.set(row, 0);
  return features;
}

}  // namespace longhaul::config
