// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/signs_of_others.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {
constexpr double kTooLongEnough = 14;
// A long round trip gives the line so much time to recover that its signs count for more: otherwise the
// sender would give way for seconds.
constexpr Duration kCountsOnce = 80ms;
constexpr double kCountsMost = 3;
double sign_of(Duration queue, Duration target, Duration base_rtt) {
  const double weight = std::clamp(seconds(base_rtt) / seconds(kCountsOnce), 1., kCountsMost);
  if (queue > 8 * target) return kTooLongEnough / 2;  // one deep fade is not enough
  if (queue > target * 11 / 10) return weight * 2;
  return queue > target ? weight : 0;
}

constexpr double kFewestInRound = 4;  // with fewer in a round trip, the packets are the queue
constexpr unsigned kTriedRounds = 3;

// A queue that overflows again and again is not that of a sender that keeps it short.
constexpr std::uint32_t kLatestRounds = 0xFFF;
constexpr int kLossyRounds = 3;
constexpr double kFewestAcked = 8;  // packets: when a line stands still, all that comes then may be lost
}  // namespace

void SignsOfOthers::on_sample(const RateSample& sample, const LineModel& line) {
  acked_ += static_cast<double>(sample.acked_bytes);
  lost_ += static_cast<double>(sample.lost_bytes) - static_cast<double>(sample.spurious_bytes);
  if (!sample.forward_delay || !LineWatch::is_full(sample)) return;
  least_queue_ = std::min(least_queue_.value_or(line.watch.queue()), line.watch.queue());
}

void SignsOfOthers::on_round(const LineModel& line, Duration target, bool tries) {
  if (!least_queue_ || acked_ < kFewestInRound * packet_bytes_) return;  // with the next one
  const double sign = sign_of(*least_queue_, target, line.watch.base_rtt());
  // A path that has become longer, and a line that is tried at more than its rate, keep their delay, too.
  const bool explained = line.watch.doubts() || (tries && tried_rounds_++ < kTriedRounds);
  if (!explained) too_long_ += sign;
  if (sign <= 0) {
    too_long_ = 0;
    tried_rounds_ = 0;
  }
  note_losses(line.tests.harmless_loss());
  least_queue_.reset();
  acked_ = lost_ = 0;
}

void SignsOfOthers::note_losses(double harmless) {
  const double usual = harmless * (acked_ + lost_);
  loses_ = lost_ > usual + 4 * std::sqrt(usual * packet_bytes_) + packet_bytes_;
  const bool overflowed = loses_ && lost_ < acked_ && acked_ > kFewestAcked * packet_bytes_;
  lossy_rounds_ = (lossy_rounds_ << 1 | (overflowed ? 1U : 0U)) & kLatestRounds;
}

bool SignsOfOthers::are_enough() const {
  return too_long_ >= kTooLongEnough || std::popcount(lossy_rounds_) >= kLossyRounds;
}

}  // namespace longhaul::link::udp
