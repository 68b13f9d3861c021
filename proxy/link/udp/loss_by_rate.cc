// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/loss_by_rate.h"

#include <algorithm>
#include <cmath>

namespace longhaul::link::udp {

namespace {
constexpr double kDeviations = 3.5;
constexpr double kAvoided = 0.3;  // share of the loss that a lower rate must avoid to be worthwhile
}  // namespace

void LossByRate::add(Level level, double rate, const EpochTally& tally) {
  Cell& cell = cells_[static_cast<std::size_t>(level)];
  cell.acked = std::max(0.0, cell.acked + static_cast<double>(tally.acked_bytes));
  cell.lost = std::max(0.0, cell.lost + static_cast<double>(tally.lost_bytes));
  cell.rate_sum =
      std::max(0.0, cell.rate_sum + rate * static_cast<double>(tally.acked_bytes + tally.lost_bytes));
  cell.runs += tally.loss_runs;
}

void LossByRate::age(double factor) {
  for (Cell& each : cells_) {
    double part = factor;
    if (&each == &cell(Level::normal))
      part = std::max(factor, std::min(1.0, kEnoughPackets * packet_bytes_ / std::max(each.bytes(), 1.0)));
    each.acked *= part;
    each.lost *= part;
    each.rate_sum *= part;
    each.runs *= part;
  }
}

// Packets that were not slowed down.
LossByRate::Cell LossByRate::faster() const {
  Cell all = cell(Level::high);
  const Cell& normal = cell(Level::normal);
  all.acked += normal.acked;
  all.lost += normal.lost;
  all.rate_sum += normal.rate_sum;
  all.runs += normal.runs;
  return all;
}

bool LossByRate::decided() const {
  const double enough = kEnoughPackets * packet_bytes_;
  return cell(Level::low).bytes() >= enough && faster().bytes() >= enough;
}

bool LossByRate::depends_on_rate() const {
  if (!decided()) return false;
  const Cell& low = cell(Level::low);
  const Cell high = faster();
  if (high.rate() <= low.rate()) return false;
  const double more = high.loss() - low.loss();
  const double share = (high.lost + low.lost) / (high.bytes() + low.bytes());
  // If losses are bursty, shares vary more than for independent losses, whose runs have this length:
  const double run_of_dice = 1 / (1 - share);
  const double run =
      std::max((high.lost + low.lost) / packet_bytes_ / std::max(high.runs + low.runs, 1.0), run_of_dice);
  const double scatter = (2 * run - 1) / (2 * run_of_dice - 1);
  const double deviation =
      std::sqrt(share * (1 - share) * scatter * packet_bytes_ * (1 / high.bytes() + 1 / low.bytes()));
  return more > std::max(kAvoided * high.loss(), kDeviations * deviation);
}

double LossByRate::random_loss() const { return depends_on_rate() ? cell(Level::low).loss() : total_loss(); }

double LossByRate::loss(Level level) const { return cell(level).loss(); }

double LossByRate::total_loss() const {
  double lost = 0;
  double bytes = 0;
  for (const Cell& cell : cells_) {
    lost += cell.lost;
    bytes += cell.bytes();
  }
  return bytes > 0 ? lost / bytes : 0;
}

}  // namespace longhaul::link::udp
