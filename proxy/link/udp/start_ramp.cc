// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/start_ramp.h"

#include <algorithm>
#include <utility>

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {

constexpr double kGrowth = 3;      // in a round trip, if the train met no limit
constexpr double kMoreLoss = 0.2;  // share; not reached by chance alone

// Whether packets are spaced by the line.
bool queue_is_noticed(const LineWatch& watch) {
  return watch.queue() > std::max<Duration>(4ms, watch.base_rtt() / 8);
}

}  // namespace

StartRamp::Step StartRamp::on_train(const RateSample& sample, const Around& around) {
  const auto& found = sample.delivery ? sample.delivery : sample.beginning;
  if (!found || found->application_limited) return {};
  const auto& delivery = *found;
  const auto dispatched = static_cast<double>(delivery.dispatched_bytes);
  if (dispatched < packets(around.train / 2)) return {};
  // Receivers report packets of a short time together: a train that seems faster than this shows nothing.
  const double time = std::max(seconds(delivery.arrival_interval), seconds(1ms));
  const double rate = dispatched / time;
  // The whole train, or what arrived of it when later packets begin to be acknowledged.
  if (dispatched < packets(0.9 * around.train) && sample.round < 2) return {};
  round_ = sample.round;
  previous_rate_ = 0;
  if (queue_is_noticed(around.watch)) {
    // On a slow line the train is a queue of many round trips: nothing more is to be learnt.
    train_ = rate;
    return {Next::drain, rate, rate};
  }
  if (delivery.arrival_interval > around.span / 2) {
    // Its end was lost, or it was not sent at once: this only shows that so much arrives in a round trip.
    loss_ = std::max(loss_, around.loss);
    return {Next::ramp, std::max(rate, packets(around.train) / seconds(around.span))};
  }
  const double sent_at = packets(kTrainPackets) / seconds(kTrainTime);
  train_ = rate < 0.7 * sent_at ? std::optional(rate) : std::nullopt;
  // Half of the rate of the train, if it reflects the line; and at most 32 trains per round trip, so that a
  // wrong estimate does no harm.
  const double bound = 32 * packets(kTrainPackets) / seconds(around.span);
  return {Next::ramp, std::min(train_ ? *train_ / 2 : rate, bound), train_.value_or(0)};
}

void StartRamp::note(const RateSample& sample, std::optional<double> carried) {
  for (const EpochTally& tally : sample.epochs) {
    acked_ += tally.acked_bytes;
    lost_ += tally.lost_bytes;
  }
  if (carried && !sample.delivery->application_limited) {
    best_ = std::max(best_, *carried);
    arrived_ = std::max(
        arrived_, static_cast<double>(sample.delivery->delivered_bytes) / seconds(sample.delivery->interval));
  } else if (const auto& begun = sample.beginning;
             train_ && begun && !begun->application_limited &&
             static_cast<double>(begun->dispatched_bytes) >= packets(kTrainPackets / 2)) {
    // A sender whose client waits for each piece never sends for longer than this. That is not a measurement,
    // but the rate may rise to what the train indicated.
    const double time = seconds(begun->interval);
    best_ = std::max(best_, static_cast<double>(begun->dispatched_bytes) / time);
    arrived_ = std::max(arrived_, static_cast<double>(begun->delivered_bytes) / time);
  }
}

StartRamp::Step StartRamp::on_ramp(const RateSample& sample, std::optional<double> carried,
                                   const Around& around) {
  note(sample, carried);
  // Arrivals are spaced by the line: that is its rate. Only of the latest ones, if too little was sent before
  // to keep the line busy.
  if (carried && queue_is_noticed(around.watch))
    // If it stood still for a moment, it still carries what it did before.
    return {Next::drain,
            std::max(*carried, std::min(std::max(train_.value_or(0), previous_best_), around.line))};
  if (sample.round == round_) return {};
  round_ = sample.round;
  const double bytes = static_cast<double>(acked_ + lost_);
  const double loss = bytes > 0 ? std::max(0.0, static_cast<double>(lost_) / bytes) : 0;
  const double best = std::exchange(best_, 0);
  const double arrived = std::exchange(arrived_, 0);
  acked_ = lost_ = 0;
  if (best <= 0) return {};  // the application had too little to send
  const bool enough = bytes > packets(50);
  // There is no queue, but much is dropped that was not at a lower rate. Either the arrivals are the line's
  // capacity, or random loss has begun: sending slower for a moment, and faster again, distinguishes them.
  // What was not lost of the previous round did arrive, even if a host or the line stood still while the
  // arrivals were measured.
  if (enough && loss > loss_ + kMoreLoss)
    return {Next::search, std::max(arrived / (1 - loss_), previous_rate_ * (1 - loss))};
  if (enough) loss_ = loss;
  // Packets acknowledged at the end of a round were sent in the previous one.
  flat_rounds_ = best < 0.6 * previous_rate_ ? flat_rounds_ + 1 : 0;
  if (flat_rounds_ >= 2) return {Next::drain, best};
  previous_rate_ = around.line;
  previous_best_ = best;
  const double goal = std::min(train_.value_or(1e18), around.most);
  if (around.line >= 0.99 * goal) return {Next::cruise, around.line};
  return {Next::ramp, std::min(goal, (train_ ? 8 : kGrowth) * around.line)};
}

}  // namespace longhaul::link::udp
