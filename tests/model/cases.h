// SPDX-License-Identifier: Apache-2.0
// The inputs of the checker, and its expected results: the design holds, and it breaks without each
// precaution. If a broken design passes, the model proves nothing.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tests/model/explore.h"

namespace longhaul::model {

struct Case {
  std::string sentence;
  const char* breaks = nullptr;            // the rule that the checker must find broken; null: none
  std::function<Result(std::size_t)> run;  // with so many states at most
};

enum class Extent : std::uint8_t { small, large };
std::vector<Case> write_cases(Extent extent);
std::vector<Case> read_cases(Extent extent);
// Renames, named streams, sealed connections and memory.
std::vector<Case> further_cases(Extent extent);

}  // namespace longhaul::model
