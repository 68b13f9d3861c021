// SPDX-License-Identifier: Apache-2.0
// The goals as inequalities; the binomial distribution summed term by term.
#include "tools/wan/calibrate/goals.h"

#include <cmath>

namespace longhaul::wan {

std::pair<std::uint64_t, std::uint64_t> binomial_interval(std::uint64_t trials, double share,
                                                          double confidence) {
  if (share <= 0) return {0, 0};
  if (share >= 1) return {trials, trials};
  const double tail = (1 - confidence) / 2;
  const double n = static_cast<double>(trials);
  std::uint64_t low = 0;
  double below = 0;  // the chance of a count less than or equal to the one looked at
  for (std::uint64_t count = 0; count <= trials; ++count) {
    const double k = static_cast<double>(count);
    // Logarithms: the terms themselves leave the range of a double for large counts.
    below += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) + k * std::log(share) +
                      (n - k) * std::log1p(-share));
    if (below <= tail) low = count + 1;
    if (below >= 1 - tail) return {low, count};
  }
  return {low, trials};
}

bool rate_is_right(double set_bits, double measured_bits) {
  return std::abs(measured_bits - set_bits) <= 0.01 * set_bits;
}

bool delay_is_right(double set_ms, double floor_ms, double measured_ms) {
  return std::abs(measured_ms - (set_ms + floor_ms)) <= 0.3;
}

bool loss_is_right(std::uint64_t sent, std::uint64_t lost, double share) {
  const auto [low, high] = binomial_interval(sent, share, 0.999);
  return lost >= low && lost <= high;
}

}  // namespace longhaul::wan
