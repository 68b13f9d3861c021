// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/follow_phase.h"

#include <algorithm>

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {
constexpr Duration kLeastKept = 25ms, kMostKept = 50ms;  // of a queue
constexpr double kFewestKept = 2;                        // packets in it
constexpr double kMostWindow = 6;               // packets beyond what the rate and the kept queue need
constexpr double kSlowest = 0.4, kFastest = 2;  // of the rate at which packets arrive

// Arrivals include a standstill for a while, and then show next to nothing of the line's rate.
constexpr int kStandstillSpans = 4;
constexpr Duration kTrying = 2s;
constexpr double kTriedPackets = 4;  // in each of:
constexpr Duration kTriedEach = 50ms;

// A queue that stays empty, although more is sent each time: probing finds a much faster line sooner.
constexpr int kEmptyRounds = 8;
constexpr Duration kLeastRound = 500ms;

constexpr double kSteady = 1.25;  // the most by the least that arrived
constexpr Duration kSteadyTime = 8s;
constexpr int kSteadySpans = 60;
constexpr Duration kNeverShort = 20s;  // the base delay may be forgotten: the queue has to drain
// Samples that show no rate: there was too little to send, or too little arrived.
constexpr unsigned kTooLittle = 40, kLimited = 5;

Duration steady_time(const LineModel& line) {
  return std::max<Duration>(kSteadyTime, kSteadySpans * line.span());
}
}  // namespace

Duration FollowPhase::target(const LineModel& line) const {
  const Duration least = std::clamp(line.watch.base_rtt() / 2, kLeastKept, kMostKept);
  const Duration packets =
      most_.value() ? LineModel::times(1s, std::min(kFewestKept * packet_bytes_ / *most_.value(), 1.))
                    : Duration{0};
  return std::max(least, packets) + line.watch.usual_pause();
}

Plan FollowPhase::begin(TimePoint now) {
  *this = FollowPhase(packet_bytes_);
  since_ = measured_at_ = short_at_ = queued_at_ = now;
  return {Phase::follow};
}

void FollowPhase::on_sample(const RateSample& sample, LineModel& line, bool new_round) {
  others_.on_sample(sample, line);
  if (sample.forward_delay && LineWatch::is_full(sample)) on_queue(sample.now, line);
  if (new_round) others_.on_round(line, target(line), tries_);
  if (sample.delivery && !sample.delivery->application_limited)
    on_arrivals(sample, new_round, line);
  else
    too_little_ += sample.delivery ? kLimited : 1;
}

void FollowPhase::on_queue(TimePoint now, const LineModel& line) {
  if (line.watch.queue() < target(line) / 4)
    short_at_ = now;
  else
    queued_at_ = now;
}

void FollowPhase::on_arrivals(const RateSample& sample, bool new_round, LineModel& line) {
  const TimePoint now = sample.now;
  const DeliveryRate& delivery = *sample.delivery;
  const double harmless = std::min(line.tests.harmless_loss(), 0.6);
  const double rate =
      static_cast<double>(delivery.delivered_bytes) / seconds(delivery.arrival_interval) / (1 - harmless);
  if (now - measured_at_ > kStandstillSpans * line.span()) since_ = stood_still_at_ = now;
  measured_at_ = now;
  too_little_ = 0;
  if (arrivals_ <= 0) arrivals_ = rate;
  if (new_round) arrivals_ += (rate - arrivals_) / 4;
  least_.set_window(steady_time(line));
  most_.set_window(steady_time(line));
  least_.add(now, arrivals_);
  most_.add(now, arrivals_);
  if (line.watch.doubts()) return;

  // The queue is to have its length a round trip from now.
  const double queue = seconds(line.watch.queue());
  const double answer = seconds(std::max(line.watch.base_rtt(), kLeastKept)) + queue;
  const double factor = 1 + (seconds(target(line)) - queue) / answer;
  // What arrived at once was late; it does not show a line many times as fast.
  const double most = kFastest * static_cast<double>(delivery.dispatched_bytes) / seconds(delivery.interval);
  const double wanted = std::min(rate * std::clamp(factor, kSlowest, others_.loses() ? 1 : kFastest), most);
  const double tried = std::min(kTriedPackets * packet_bytes_ / seconds(kTriedEach), *most_.value() / 4);
  tries_ = now - stood_still_at_ < kTrying && tried > wanted;
  line.set_rate(tries_ ? tried : wanted);
}

FollowPhase::Next FollowPhase::next(TimePoint now, const LineModel& line) const {
  if (others_.are_enough()) return Next::compete;
  const Duration time = steady_time(line);
  if (too_little_ >= kTooLittle && now - measured_at_ > time / 4) return Next::stop;
  if (measured_at_ - queued_at_ > kEmptyRounds * std::max(line.watch.base_rtt(), kLeastRound))
    return Next::stop;
  if (now - short_at_ > std::max(kNeverShort, 2 * time)) return Next::stop;
  if (now - since_ < time || !least_.value()) return Next::stay;
  return *most_.value() < kSteady * *least_.value() ? Next::stop : Next::stay;
}

double FollowPhase::window(const LineModel& line) const {
  return line.rate() * seconds(line.watch.longest_base_rtt() + line.watch.queue_back() + 2 * target(line)) +
         kMostWindow * packet_bytes_;
}

}  // namespace longhaul::link::udp
