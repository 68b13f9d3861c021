// SPDX-License-Identifier: Apache-2.0
// MeasuredLaw's start: a train of packets whose spacing at the receiver shows the line's rate, then a few
// round trips in which the estimate is trusted more and more.
#include <algorithm>

#include "proxy/link/udp/measured_law.h"

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {
constexpr double kGrowth = 3;      // in a round trip, where the train met no limit
constexpr double kMoreLoss = 0.2;  // share; chance alone does not do that
}  // namespace

// Packets are spaced as the line spaces them.
Duration MeasuredLaw::noticed_queue() const { return std::max<Duration>(4ms, watch_.base_rtt() / 8); }

void MeasuredLaw::on_train(const RateSample& sample) {
  const auto& found = sample.delivery ? sample.delivery : sample.beginning;
  if (!found || found->application_limited) return;
  const auto& delivery = *found;
  if (static_cast<double>(delivery.dispatched_bytes) < packets(kTrainPackets / 2)) return;
  // Receivers take packets of some time at once: a train that seems faster than this is useless.
  const double time = std::max(seconds(delivery.arrival_interval), seconds(1ms));
  const double rate = static_cast<double>(delivery.dispatched_bytes) / time;
  // The whole train, or the part that arrived when its successors begin to be acknowledged.
  if (static_cast<double>(delivery.dispatched_bytes) < packets(0.9 * kTrainPackets) && sample.round < 2)
    return;
  ramp_round_ = sample.round;
  previous_rate_ = 0;
  const double train_loss = losses_.total_loss();
  if (watch_.queue() > noticed_queue()) {
    // On a slow line the train is a queue of many round trips: nothing more can be learnt.
    train_ = rate;
    capacity_ = rate;
    set_line(rate);
    begin_drain(sample.now);
    return;
  }
  if (delivery.arrival_interval > span() / 2) {
    // Its end was lost, or it was not sent at once: only this amount is known to arrive in a round trip.
    set_line(std::max(rate, packets(kTrainPackets) / seconds(span())));
    ramp_loss_ = std::max(ramp_loss_, train_loss);
    enter(Phase::ramp, 1, Duration::max(), sample.now);
    return;
  }
  const double sent_at = packets(kTrainPackets) / seconds(kTrainTime);
  train_ = rate < 0.7 * sent_at ? std::optional(rate) : std::nullopt;
  capacity_ = train_.value_or(0);
  // Half of the rate of the train, if it reflects the line; and at most 32 trains per round trip, so that a
  // wrong estimate does no harm.
  const double bound = 32 * packets(kTrainPackets) / seconds(span());
  set_line(std::min(train_ ? *train_ / 2 : rate, bound));
  enter(Phase::ramp, 1, Duration::max(), sample.now);
}

void MeasuredLaw::on_ramp(const RateSample& sample) {
  for (const EpochTally& tally : sample.epochs) {
    round_acked_ += tally.acked_bytes;
    round_lost_ += tally.lost_bytes;
  }
  const auto rate = carried(sample.delivery);
  if (rate && !sample.delivery->application_limited) {
    round_best_ = std::max(round_best_, *rate);
    round_arrived_ = std::max(round_arrived_, static_cast<double>(sample.delivery->delivered_bytes) /
                                                  seconds(sample.delivery->interval));
  } else if (const auto& begun = sample.beginning;
             train_ && begun && !begun->application_limited &&
             static_cast<double>(begun->dispatched_bytes) >= packets(kTrainPackets / 2)) {
    // A sender whose client waits for each piece never sends for longer than this. That is no measurement,
    // but the rate may rise to what the train indicated.
    const double time = seconds(begun->interval);
    round_best_ = std::max(round_best_, static_cast<double>(begun->dispatched_bytes) / time);
    round_arrived_ = std::max(round_arrived_, static_cast<double>(begun->delivered_bytes) / time);
  }
  if (rate && watch_.queue() > noticed_queue()) {
    // Arrivals are spaced as the line spaces them: that is its rate. Only the latest ones, if too little was
    // sent before to keep the line busy.
    set_line(std::max(*rate, std::min(train_.value_or(0), line_)));
    begin_drain(sample.now);
    return;
  }
  if (sample.round == ramp_round_) return;
  ramp_round_ = sample.round;
  const double bytes = static_cast<double>(round_acked_ + round_lost_);
  const double loss = bytes > 0 ? std::max(0.0, static_cast<double>(round_lost_) / bytes) : 0;
  const double best = std::exchange(round_best_, 0);
  const double arrived = std::exchange(round_arrived_, 0);
  round_acked_ = round_lost_ = 0;
  if (best <= 0) return;  // the application had too little to send
  const bool enough = bytes > packets(50);
  if (enough && loss > ramp_loss_ + kMoreLoss) {
    // No queue, but many packets are dropped that were not at a lower rate. Either the arrivals show the
    // line's capacity, or random loss has begun: slowing down for a moment, and speeding up again, shows
    // which.
    set_line(arrived / (1 - ramp_loss_));
    growing_ = true;
    growth_ = 0.25;
    begin_drain(sample.now);
    return;
  }
  if (enough) ramp_loss_ = loss;
  // Packets acknowledged at the end of a round were sent in the previous one.
  flat_rounds_ = best < 0.6 * previous_rate_ ? flat_rounds_ + 1 : 0;
  if (flat_rounds_ >= 2) {
    set_line(best);
    begin_drain(sample.now);
    return;
  }
  previous_rate_ = line_;
  const double most = config_.max_rate > 0 ? static_cast<double>(config_.max_rate) : 1e18;
  const double goal = std::min(train_.value_or(1e18), most);
  if (line_ >= 0.99 * goal) {
    begin_cruise(sample.now);
    return;
  }
  set_line(std::min(goal, (train_ ? 8 : kGrowth) * line_));
  enter(Phase::ramp, 1, Duration::max(), sample.now);
}

}  // namespace longhaul::link::udp
