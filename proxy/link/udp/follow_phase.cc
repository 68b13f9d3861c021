// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/follow_phase.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {
constexpr double kSlowest = 0.4, kFastest = 2;  // of the rate at which packets arrive
constexpr double kFewestKept = 2;               // packets in the queue
constexpr double kMostWindow = 6;               // packets beyond what the rate and the kept queue need

// A line whose rate falls has a queue that is too long for some round trips. Only a queue that others fill
// stays, however much less is sent.
constexpr unsigned kSignsOfOthers = 14;
unsigned signs_of_others(Duration queue, Duration target) {
  if (queue > 8 * target) return 7;
  if (queue > target * 11 / 10) return 2;
  return queue > target ? 1 : 0;
}

// A queue that overflows again and again is not that of a sender that keeps it short.
constexpr std::uint32_t kLatestRounds = 0xFFF;
constexpr int kLossyRounds = 3;
constexpr double kFewestAcked = 8;  // packets: when a line stands still, all that comes then may be lost

constexpr double kSteady = 1.25;  // the most by the least that arrived
constexpr Duration kSteadyTime = 8s;
constexpr int kSteadySpans = 60, kStandstillSpans = 8;

Duration steady_time(const LineModel& line) {
  return std::max<Duration>(kSteadyTime, kSteadySpans * line.span());
}
}  // namespace

Duration FollowPhase::target(const LineModel& line) const {
  // Where a packet takes longer than that, a queue of one says nothing.
  const Duration packets =
      most_.value() ? LineModel::times(1s, std::min(kFewestKept * packet_bytes_ / *most_.value(), 1.))
                    : Duration{0};
  return std::max(std::clamp<Duration>(line.watch.base_rtt() / 2, 25ms, 50ms), packets) +
         line.watch.usual_pause();
}

Plan FollowPhase::begin(TimePoint now, const LineModel& line) {
  *this = FollowPhase(packet_bytes_);
  least_.set_window(steady_time(line));
  most_.set_window(steady_time(line));
  steady_since_ = measured_at_ = now;
  return {Phase::follow};
}

void FollowPhase::on_sample(const RateSample& sample, LineModel& line, bool new_round) {
  acked_ += static_cast<double>(sample.acked_bytes);
  lost_ += static_cast<double>(sample.lost_bytes) - static_cast<double>(sample.spurious_bytes);
  least_queue_ = std::min(least_queue_.value_or(line.watch.queue()), line.watch.queue());
  if (new_round) on_round(line);
  if (!sample.delivery) return;
  if (sample.delivery->application_limited) {
    if (!too_little_since_) too_little_since_ = sample.now;
    return;
  }
  too_little_since_.reset();
  const double time = seconds(sample.delivery->arrival_interval);
  const double arrived = static_cast<double>(sample.delivery->delivered_bytes) / time;
  on_arrivals(sample.now, arrived / (1 - std::min(line.tests.harmless_loss(), 0.6)), new_round, line);
}

void FollowPhase::on_round(const LineModel& line) {
  const unsigned signs = signs_of_others(*least_queue_, target(line));
  signs_of_others_ = signs > 0 ? signs_of_others_ + signs : 0;
  least_queue_.reset();
  const double usual = line.tests.harmless_loss() * (acked_ + lost_);
  const bool lossy = lost_ > usual + 4 * std::sqrt(usual * packet_bytes_) + packet_bytes_ && lost_ < acked_ &&
                     acked_ > kFewestAcked * packet_bytes_;
  lossy_rounds_ = (lossy_rounds_ << 1 | (lossy ? 1U : 0U)) & kLatestRounds;
  acked_ = lost_ = 0;
}

void FollowPhase::on_arrivals(TimePoint now, double rate, bool new_round, LineModel& line) {
  if (now - measured_at_ > kStandstillSpans * line.span()) steady_since_ = now;
  measured_at_ = now;
  if (arrivals_ <= 0) arrivals_ = rate;
  if (new_round) arrivals_ += (rate - arrivals_) / 4;
  least_.add(now, arrivals_);
  most_.add(now, arrivals_);

  // The queue is to have its length a round trip from now.
  const double queue = seconds(line.watch.queue());
  const double error = (seconds(target(line)) - queue) / (seconds(line.watch.base_rtt()) + queue);
  // After a standstill, which arrivals include, a few packets in each round trip find out what is possible.
  const double few = std::min(4 * packet_bytes_ / 0.05, *most_.value() / 4);
  line.set_rate(std::max(rate * std::clamp(1 + error, kSlowest, kFastest), few));
}

FollowPhase::Next FollowPhase::next(TimePoint now, const LineModel& line) const {
  if (signs_of_others_ >= kSignsOfOthers || std::popcount(lossy_rounds_) >= kLossyRounds)
    return Next::compete;
  const Duration time = steady_time(line);
  if (too_little_since_ && now - *too_little_since_ > time / 4) return Next::stop;
  if (now - steady_since_ < time || !least_.value()) return Next::stay;
  return *most_.value() < kSteady * *least_.value() ? Next::stop : Next::stay;
}

double FollowPhase::window(const LineModel& line) const {
  return line.rate() * seconds(line.watch.longest_base_rtt() + 2 * target(line)) +
         kMostWindow * packet_bytes_;
}

}  // namespace longhaul::link::udp
