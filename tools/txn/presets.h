// SPDX-License-Identifier: Apache-2.0
// The source's experiments, each a few rows to be compared.
#pragma once
#include <string_view>
#include <vector>

#include "tools/txn/workload.h"

namespace longhaul::txn {

struct Row {
  Workload workload;
  unsigned pairs = 1;
};

struct Preset {
  std::string_view name;
  std::string_view compares;
  std::vector<Row> rows;
};

const std::vector<Preset>& presets();
const Preset& preset_of(std::string_view name);  // throws Trouble that names what there is

}  // namespace longhaul::txn
