// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/loss_by_rate.h"

#include <algorithm>
#include <cmath>

namespace longhaul::link::udp {

namespace {
// Losses come in bursts on many lines, so that shares scatter more than those of single throws of a die.
constexpr double kDeviations = 5;
}  // namespace

void LossByRate::add(Level level, double rate, std::int64_t acked_bytes, std::int64_t lost_bytes) {
  Cell& cell = cells_[static_cast<std::size_t>(level)];
  cell.acked = std::max(0.0, cell.acked + static_cast<double>(acked_bytes));
  cell.lost = std::max(0.0, cell.lost + static_cast<double>(lost_bytes));
  cell.rate_sum = std::max(0.0, cell.rate_sum + rate * static_cast<double>(acked_bytes + lost_bytes));
}

void LossByRate::age(double factor) {
  for (Cell& cell : cells_) {
    cell.acked *= factor;
    cell.lost *= factor;
    cell.rate_sum *= factor;
  }
}

// What was sent fastest on purpose, or, if nothing was, the usual.
LossByRate::Cell LossByRate::faster() const {
  return cell(Level::high).bytes() >= kEnoughPackets * packet_bytes_ ? cell(Level::high)
                                                                     : cell(Level::normal);
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
  // If both were too fast for the line it would be all of this; if only the faster one was, less.
  const double expected = (1 - low.loss()) * (1 - low.rate() / high.rate());
  const double share = (high.lost + low.lost) / (high.bytes() + low.bytes());
  const double deviation =
      std::sqrt(share * (1 - share) * packet_bytes_ * (1 / high.bytes() + 1 / low.bytes()));
  return more > std::max(0.35 * expected, kDeviations * deviation);
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
