// SPDX-License-Identifier: Apache-2.0
// How MeasuredLaw interprets losses: as chance, or as the line's answer to excess? A test decides, which
// sends much less for a round trip.
#include <algorithm>
#include <cmath>

#include "proxy/link/udp/measured_law.h"

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {
constexpr double kMuchLoss = 0.03;  // worth a test of what it depends on
constexpr Duration kLongestTestInterval = 60s;
}  // namespace

// Loss that is not the line's answer to excess. A little more than known before counts as such: otherwise the
// rate would fall without end after a change in random loss.
double MeasuredLaw::harmless_loss() const {
  const double loss = losses_.total_loss();
  return !known_random_ || loss < *known_random_ + kMuchLoss ? loss : *known_random_;
}

// A test has shown it, or it is too little for a test.
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
    // The arrivals at full rate are the line's capacity, apart from loss that a lower rate did not avoid. If
    // that is much the test may not have been slow enough.
    known_random_ = losses_.loss(LossByRate::Level::low);
    if (arrived_ > 0)
      set_line(std::min(line_, arrived_ / (1 - std::min(*known_random_, 0.6))));
    else  // not measured: assumed loss that a lower rate avoids
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
