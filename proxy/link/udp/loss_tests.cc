// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/loss_tests.h"

#include <algorithm>

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {
constexpr double kMuchLoss = 0.03;  // worth a test of what it depends on
constexpr Duration kFirstTest = 6s;
constexpr Duration kLongestTestInterval = 60s;
}  // namespace

LossTests::LossTests(std::uint32_t packet_bytes, TimePoint now)
    : losses_(packet_bytes), tested_at_(now), next_test_(now + kFirstTest) {}

void LossTests::adopt(const LossByRate& losses) {
  losses_ = losses;
  if (!losses.depends_on_rate()) return;
  random_ = losses.loss(LossByRate::Level::low);
  tested_loss_ = *random_;
  losses_.clear();
}

double LossTests::harmless_loss() const {
  const double loss = losses_.total_loss();
  return !random_ || loss < *random_ + kMuchLoss ? loss : *random_;
}

bool LossTests::is_harmless() const {
  const double loss = losses_.total_loss();
  if (random_) return loss < *random_ + kMuchLoss;
  return loss < kMuchLoss || (known_ && loss < tested_loss_ + kMuchLoss);
}

void LossTests::test_soon() { next_test_ = std::min(next_test_, tested_at_ + interval_); }

bool LossTests::is_due(TimePoint now, Duration span) const {
  const double loss = losses_.total_loss();
  if (loss < kMuchLoss || !losses_.enough(LossByRate::Level::normal)) return false;
  return now >= next_test_ ||
         (now >= tested_at_ + 4 * span && loss > std::max(tested_loss_, random_.value_or(0)) + kMuchLoss);
}

std::optional<LossTests::Policed> LossTests::finish(TimePoint now, Duration span) {
  const Duration soon = std::max<Duration>(500ms, 4 * span);
  std::optional<Policed> found;
  if (losses_.depends_on_rate()) {
    random_ = tested_loss_ = losses_.loss(LossByRate::Level::low);
    found = {*random_, LossByRate::trial_gain(losses_.loss(LossByRate::Level::normal))};
    interval_ = soon;
    losses_.clear();
    known_ = false;
    fastest_ = 0;
  } else {
    known_ = losses_.decided();
    tested_loss_ = losses_.total_loss();
    if (random_) random_ = tested_loss_;
    interval_ = std::min<Duration>(3 * std::max(interval_, soon), kLongestTestInterval);
  }
  tested_at_ = now;
  next_test_ = now + interval_;
  return found;
}

}  // namespace longhaul::link::udp
