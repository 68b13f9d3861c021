// SPDX-License-Identifier: Apache-2.0
#include "fec/grouping.h"

#include <algorithm>
#include <cmath>

#include "fec/redundancy.h"

namespace longhaul::fec {
namespace {

// Below 0.001, as a margin for effects outside the model.
constexpr double kVeryLate = 0.0007;
// In a group longer than the deadline, a message of the first part is always late if it is lost.
constexpr double kLateByDesign = 0.5;  // relative to the allowed share
constexpr std::uint32_t kMostGroup = 64;
constexpr std::uint32_t kMostRepairs = 16;
constexpr double kMostChances = 6;

// Share of messages that arrive later than `limit`. A message that is j messages old when its group's repairs
// are sent can be restored by these, or by those of later groups, whose windows include it; finally it is
// retransmitted. All messages after a missing one wait for it.
double late(const Conditions& c, Grouping g, double limit, double again) {
  const double cadence = g.group * c.spacing_seconds;
  const std::uint32_t step = (g.group + 3) / 4;  // a sample of ages represents all
  double sum = 0;
  std::uint32_t ages = 0;
  for (std::uint32_t j = 0; j < g.group; j += step, ++ages) {
    const double age = j * c.spacing_seconds;
    if (age > limit) {  // if this message is lost, it is always late
      sum += g.group * c.rate * std::ceil((age - limit) / c.spacing_seconds);
      continue;
    }
    const double chances = 1 + std::min(std::floor((limit - age) / cadence), kMostChances - 1);
    const double restored = std::min(age + chances * cadence, again);
    const double behind = std::max(1.0, std::ceil((restored - limit) / c.spacing_seconds));
    const auto n = static_cast<std::uint32_t>(chances);
    sum += shortfall(n * g.group, n * g.repairs, c.rate, c.burst) * behind;
  }
  return sum / ages / g.group;
}

}  // namespace

Grouping cheapest_grouping(const Conditions& given) {
  Conditions c = given;
  c.spacing_seconds = std::max(c.spacing_seconds, 5e-4);
  const double again = c.round_trip_seconds * 1.1 + 5e-3;  // time until the retransmission arrives
  if (c.rate <= 0 || again <= c.deadline_seconds) return {};
  const auto good = [&](Grouping g, bool holds_deadline) {
    return late(c, g, c.deadline_seconds, again) <= c.late * (holds_deadline ? 1 : kLateByDesign) &&
           late(c, g, c.round_trip_seconds, again) <= kVeryLate;
  };
  // Tries the group that fits the deadline, half of it, and so on; and, for low loss, larger groups.
  const auto held = static_cast<std::uint32_t>(std::clamp(c.deadline_seconds / c.spacing_seconds, 0.0,
                                                          static_cast<double>(kMostGroup) / 2)) +
                    1;
  Grouping cheapest;
  double least = 1e9;
  for (std::uint32_t group = 4 * held; group > 0; group /= 2) {
    if (group > kMostGroup || (group > held && group * c.spacing_seconds > c.round_trip_seconds)) continue;
    Grouping g{group, 1};
    while (g.repairs < kMostRepairs && static_cast<double>(g.repairs) / group < least &&
           !good(g, group <= held))
      ++g.repairs;
    if (static_cast<double>(g.repairs) / group >= least) continue;
    if (!good(g, group <= held) && group > 1) continue;
    least = static_cast<double>(g.repairs) / group;
    cheapest = g;
  }
  return cheapest;
}

}  // namespace longhaul::fec
