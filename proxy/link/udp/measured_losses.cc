// SPDX-License-Identifier: Apache-2.0
// What MeasuredLaw makes of losses: chance, or the line's answer to too much? A test tells, which sends much
// less for a round trip.
#include <algorithm>
#include <cmath>

#include "proxy/link/udp/measured_law.h"

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {
constexpr double kMuchLoss = 0.03;  // worth a test of what it depends on
constexpr Duration kLongestTestInterval = 60s;
}  // namespace

// Loss that is not the line's answer to too much. A little more than was known before is: or, after a change
// of the weather, the rate would fall without end.
double MeasuredLaw::harmless_loss() const {
  const double loss = losses_.total_loss();
  return !known_random_ || loss < *known_random_ + kMuchLoss ? loss : *known_random_;
}

// A test has said so, or it is too little to be worth one.
bool MeasuredLaw::is_harmless(double loss) const {
  if (known_random_) return loss < *known_random_ + kMuchLoss;
  return loss < kMuchLoss || (losses_known_ && loss < tested_loss_ + kMuchLoss);
}

void MeasuredLaw::test_soon() { next_test_ = std::min(next_test_, tested_at_ + test_interval_); }

bool MeasuredLaw::test_is_due(TimePoint now) const {
  const double loss = losses_.total_loss();
  if (loss < kMuchLoss || !losses_.enough(LossByRate::Level::normal)) return false;
  return now >= next_test_ || (now >= tested_at_ + 4 * span() &&
                               loss > std::max(tested_loss_, known_random_.value_or(0)) + kMuchLoss);
}

void MeasuredLaw::after_test(TimePoint now) {
  const Duration soon = std::max<Duration>(500ms, 4 * span());
  if (losses_.depends_on_rate()) {
    // What arrives at full rate is what the line carries, but for the loss that slowness did not avoid. If
    // that is much it may not have been slow enough.
    known_random_ = losses_.loss(LossByRate::Level::low);
    if (arrived_ > 0)
      set_line(std::min(line_, arrived_ / (1 - std::min(*known_random_, 0.6))));
    else  // not measured: then what avoided losses must do
      set_line(line_ * LossByRate::trial_gain(losses_.total_loss()));
    growing_ = false;
    tested_loss_ = *known_random_;
    test_interval_ = soon;
    losses_.clear();
    losses_known_ = false;
  } else {
    losses_known_ = losses_.decided();
    tested_loss_ = losses_.total_loss();
    if (known_random_) known_random_ = tested_loss_;
    test_interval_ = std::min<Duration>(3 * std::max(test_interval_, soon), kLongestTestInterval);
  }
  tested_at_ = now;
  next_test_ = now + test_interval_;
}

}  // namespace longhaul::link::udp
