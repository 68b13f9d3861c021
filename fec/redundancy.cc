// SPDX-License-Identifier: Apache-2.0
#include "fec/redundancy.h"

#include <algorithm>
#include <cmath>

namespace longhaul::fec {

double shortfall(std::uint32_t symbols, std::uint32_t repairs, double rate, double burst) {
  if (rate <= 0) return 0;
  if (rate >= 1) return 1;
  // The symbols can be restored exactly if at most `repairs` of all n = symbols + repairs packets are lost:
  // if more are lost, at least one of them is a symbol, and fewer repairs arrive than symbols are lost. So
  // the result is P(lost packets > repairs). With bursts of geometric length, the variance of the number of
  // lost packets is as if packets were 2 * mean - 1 times as large.
  const double size = 2 * burst - 1;
  const double all = std::max(1.0, (symbols + repairs) / size);
  const double most = repairs / size;
  const double odds = rate / (1 - rate);
  double term = std::exp(all * std::log1p(-rate));  // P(none lost)
  double sum = 0;
  for (double lost = 0; lost <= most; ++lost) {
    sum += term;
    term *= std::max(0.0, all - lost) / (lost + 1) * odds;
  }
  return std::clamp(1 - sum, 0.0, 1.0);
}

std::uint32_t repairs_for(std::uint32_t symbols, double rate, double burst, double target,
                          std::uint32_t most) {
  std::uint32_t repairs = 0;
  while (repairs < most && shortfall(symbols, repairs, rate, burst) > target) ++repairs;
  return repairs;
}

}  // namespace longhaul::fec
