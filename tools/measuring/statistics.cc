// SPDX-License-Identifier: Apache-2.0
// The usual figures of a sample.
#include "tools/measuring/statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace longhaul::measuring {

double quantile(std::span<const double> sorted, double share) {
  assert(!sorted.empty() && share >= 0 && share <= 1);
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  if (below + 1 >= sorted.size()) return sorted.back();
  return std::lerp(sorted[below], sorted[below + 1], place - static_cast<double>(below));
}

Summary summarize(std::vector<double> values) {
  Summary summary;
  if (values.empty()) return summary;
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  // In two passes: the sum of squares alone would lose the deviation of large values that lie close together.
  double sum = 0;
  for (const double value : values) sum += value;
  summary.mean = sum / count;
  double squares = 0;
  for (const double value : values) squares += (value - summary.mean) * (value - summary.mean);
  summary.count = values.size();
  summary.deviation = values.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
  summary.least = values.front();
  summary.median = quantile(values, 0.5);
  summary.p95 = quantile(values, 0.95);
  summary.p99 = quantile(values, 0.99);
  summary.most = values.back();
  return summary;
}

}  // namespace longhaul::measuring
