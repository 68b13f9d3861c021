// SPDX-License-Identifier: Apache-2.0
// The modules of this program, and the instances that a daemon runs.
#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "proxy/modules/descriptor.h"

namespace longhaul::modules {

// In the order of the documentation. list.cc has those of the product; other programs can define this
// function with other modules.
std::span<const Descriptor* const> descriptors();

// The features of all modules.
const config::FeatureTable& feature_table();

// A module with its instance.
struct Listed {
  Descriptor descriptor;
  std::shared_ptr<Instance> instance;
  // Memory of its flows; by default without a limit.
  std::shared_ptr<Memory> memory = std::make_shared<Memory>(~std::uint64_t{0});
};
using List = std::span<const Listed>;

// For one daemon: each module with the state that its flows share. `memory` is shared by all modules.
std::vector<Listed> all(const std::shared_ptr<Memory>& memory, const Resources& resources);

const Listed* find(List list, std::string_view name, std::uint64_t version);

}  // namespace longhaul::modules
