// SPDX-License-Identifier: Apache-2.0
// What many measured values say together. Leaves units and their names to the tools.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace longhaul::measuring {

struct Summary {  // of nothing: all zero
  std::size_t count = 0;
  double least = 0;
  double mean = 0;
  double deviation = 0;  // of a sample (divided by count - 1); 0 for a single value
  double median = 0;
  double p95 = 0;
  double p99 = 0;
  double most = 0;
};

// Takes a copy, since it sorts.
Summary summarize(std::vector<double> values);

// Between the two nearest ranks in proportion, as numpy and spreadsheets do: of {1, 2, 3, 4} the 0.5 quantile
// is 2.5. `sorted` is ascending and not empty; `share` lies in 0…1.
double quantile(std::span<const double> sorted, double share);

}  // namespace longhaul::measuring
