// SPDX-License-Identifier: Apache-2.0
// The features of application modules: rows from each module's descriptor, the table of a program's rows, and
// values for such a table. Independent of any particular module.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace longhaul::config {

inline constexpr std::size_t kMaxFeatureNameBytes = 48;

// One feature. Its name and its values are part of the wire format: they never change their meaning.
struct ModuleFeature {
  static constexpr std::array<std::string_view, 2> kSwitch{"false", "true"};

  std::string_view name;  // the module's name, or "MODULE.PART"; at most kMaxFeatureNameBytes
  // From the most to the least restrictive value, "false" first: of two sites' values the earlier one is in
  // force.
  std::span<const std::string_view> values = kSwitch;
  std::uint8_t standard = 1;   // index of the default, also in presets A and A+F; others use 0
  std::string_view part_of{};  // the feature that this one needs, an earlier row; empty: none
};

// The rows of all modules of a program. Built once; must outlive everything that refers to it.
class FeatureTable {
 public:
  static constexpr std::size_t kMost = 32;

  FeatureTable() = default;  // no modules
  explicit FeatureTable(std::initializer_list<std::span<const ModuleFeature>> of_modules) {
    for (const auto rows : of_modules) add(rows);
  }
  void add(std::span<const ModuleFeature> rows);

  std::span<const ModuleFeature> rows() const { return rows_; }
  std::optional<std::size_t> find(std::string_view name) const;

 private:
  std::vector<ModuleFeature> rows_;
};

// A value for each row of a table.
class ModuleFeatures {
 public:
  ModuleFeatures();  // of no modules
  explicit ModuleFeatures(const FeatureTable& table) : table_(&table) {}  // all off
  static ModuleFeatures standard(const FeatureTable& table);

  const FeatureTable& table() const { return *table_; }
  std::uint8_t operator[](std::size_t row) const { return values_[row]; }
  void set(std::size_t row, std::uint8_t value) { values_[row] = value; }
  // By name; 0 (off) if the table does not have it.
  std::uint8_t value(std::string_view name) const;
  std::string_view text(std::size_t row) const { return table_->rows()[row].values[values_[row]]; }
  // Sets a value by name, which must be in the table.
  void set(std::string_view name, std::uint8_t value) { set(table_->find(name).value(), value); }

  bool operator==(const ModuleFeatures&) const = default;

 private:
  const FeatureTable* table_;
  std::array<std::uint8_t, FeatureTable::kMost> values_{};
};

// The lower value of each feature; off where only one of the two tables has it.
ModuleFeatures meet(const ModuleFeatures& asked, const ModuleFeatures& allowed);
// Switches the parts of a feature off if the feature is off.
ModuleFeatures without_idle_parts(ModuleFeatures features);

}  // namespace longhaul::config
