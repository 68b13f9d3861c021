// SPDX-License-Identifier: Apache-2.0
// The formulas of RFC 9438, RFC 5681 and RFC 9406.
#include "tests/simulator/tcp_law.h"

#include <algorithm>
#include <cmath>

namespace longhaul::simulator {

using namespace std::chrono_literals;

std::optional<double> HystartPlusPlus::on_ack(const TcpAck& ack) {
  // RFC 9406, section 4.2 and 4.3.
  constexpr int kSamples = 8, kConservativeRounds = 5;
  constexpr double kConservativeGrowth = 0.25;
  if (ack.round != round_) {
    round_ = ack.round;
    last_round_least_ = this_round_least_;
    this_round_least_ = Duration::max();
    samples_ = 0;
    if (conservative_ && ++conservative_rounds_ >= kConservativeRounds) return std::nullopt;
  }
  this_round_least_ = std::min(this_round_least_, ack.rtt);
  if (++samples_ < kSamples || last_round_least_ == Duration::max())
    return conservative_ ? kConservativeGrowth : 1.0;
  if (!conservative_) {
    const Duration allowed = std::clamp<Duration>(last_round_least_ / 8, 4ms, 16ms);
    if (this_round_least_ >= last_round_least_ + allowed) {
      baseline_ = this_round_least_;
      conservative_ = true;
      conservative_rounds_ = 0;
    }
  } else if (this_round_least_ < baseline_) {  // the delay was a passing one
    baseline_ = Duration::max();
    conservative_ = false;
  }
  return conservative_ ? kConservativeGrowth : 1.0;
}

void RenoLaw::on_ack(const TcpAck& ack) {
  if (!ack.window_limited) return;
  window_ += window_ < threshold_ ? ack.acked : ack.acked / window_;
}

void RenoLaw::on_loss(TimePoint) { window_ = threshold_ = std::max(2.0, window_ / 2); }

void RenoLaw::on_timeout(TimePoint) {
  threshold_ = std::max(2.0, window_ / 2);
  window_ = 1;
}

namespace {
constexpr double kBeta = 0.7;                                 // RFC 9438, section 4.6
constexpr double kC = 0.4;                                    // section 5
constexpr double kAlphaReno = 3 * (1 - kBeta) / (1 + kBeta);  // section 4.3
}  // namespace

void CubicLaw::on_ack(const TcpAck& ack) {
  if (!ack.window_limited) return;
  if (window_ < threshold_) {
    const auto growth = options_.hystart && threshold_ > 1e11 ? hystart_.on_ack(ack) : 1.0;
    if (growth) {
      window_ = std::min(threshold_, window_ + ack.acked * *growth);
      return;
    }
    threshold_ = window_;
  }
  if (!epoch_start_) {  // section 4.2
    epoch_start_ = ack.now;
    friendly_ = window_;
    if (before_ == 0) before_ = window_;
    origin_ = std::max(largest_, window_);
    to_origin_ = std::cbrt((origin_ - window_) / kC);
  }
  const auto cubic = [&](double seconds) { return kC * std::pow(seconds - to_origin_, 3) + origin_; };
  const double elapsed = std::chrono::duration<double>(ack.now - *epoch_start_).count();
  const double rtt = std::chrono::duration<double>(ack.rtt).count();
  friendly_ += (friendly_ >= before_ ? 1 : kAlphaReno) * ack.acked / window_;
  if (cubic(elapsed) < friendly_) {
    window_ = std::max(window_, friendly_);
  } else {
    const double target = std::clamp(cubic(elapsed + rtt), window_, 1.5 * window_);
    window_ += (target - window_) / window_ * ack.acked;
  }
}

void CubicLaw::reduce() {
  // Section 4.7: a flow that was smaller than before leaves room for others.
  largest_ = window_ < largest_ ? window_ * (1 + kBeta) / 2 : window_;
  before_ = window_;
  threshold_ = std::max(2.0, window_ * kBeta);
  epoch_start_.reset();
}

void CubicLaw::on_loss(TimePoint) {
  reduce();
  window_ = threshold_;
}

void CubicLaw::on_timeout(TimePoint) {
  reduce();
  window_ = 1;
}

}  // namespace longhaul::simulator
