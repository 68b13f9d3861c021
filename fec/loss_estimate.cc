// SPDX-License-Identifier: Apache-2.0
#include "fec/loss_estimate.h"

#include <algorithm>
#include <cmath>

namespace longhaul::fec {
namespace {

// The slow sums cover at least kSlowSeconds and kSlowPackets, so that the few packets of a sparse flow are
// not forgotten before they are significant; the fast sums detect that a path has become worse.
constexpr double kSlowSeconds = 4, kSlowPackets = 1000;
constexpr double kFastSeconds = 0.5, kFastPackets = 100;
constexpr double kStaleSeconds = 60;
constexpr double kStartLosses = 2.5;  // begin after three losses in short succession,
constexpr double kStopLosses = 0.7;   // end when all except the last have decayed
constexpr double kLeastRate = 1e-4;   // a loss of one in ten thousand is not worth repairs

double fading(double seconds, double packets, double memory_seconds, double memory_packets) {
  return std::max(std::exp(-seconds / memory_seconds), std::exp(-packets / memory_packets)) *
         std::exp(-seconds / kStaleSeconds);
}

}  // namespace

void LossEstimate::Sums::fade(double factor) {
  packets *= factor;
  lost *= factor;
  bursts *= factor;
}

void LossEstimate::Sums::add(const LossReport& report) {
  packets += report.delivered + report.lost;
  lost += report.lost;
  bursts += report.bursts;
}

void LossEstimate::add(std::chrono::steady_clock::time_point now, const LossReport& report) {
  if (report.queue_stood || report.delivered + report.lost == 0) return;
  const double packets = report.delivered + report.lost;
  const double seconds = last_ ? std::max(0.0, std::chrono::duration<double>(now - *last_).count()) : 0;
  last_ = now;
  slow_.fade(fading(seconds, packets, kSlowSeconds, kSlowPackets));
  fast_.fade(fading(seconds, packets, kFastSeconds, kFastPackets));
  slow_.add(report);
  fast_.add(report);

  // More than three standard deviations higher: the path has changed, and older sums no longer describe it.
  const double before = slow_.rate();
  if (fast_.lost >= 4 && fast_.rate() > before + 3 * std::sqrt(before * (1 - before) / fast_.packets))
    slow_ = fast_;

  const bool on = rate_ > 0 ? slow_.lost >= kStopLosses : slow_.lost >= kStartLosses;
  rate_ = on && slow_.rate() >= kLeastRate ? std::min(slow_.rate(), 0.5) : 0;
  burst_length_ = slow_.bursts >= 1 ? std::max(1.0, slow_.lost / slow_.bursts) : 1;
}

}  // namespace longhaul::fec
