// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/measured_law.h"

#include <algorithm>
#include <cmath>

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {
constexpr double kTrainPackets = 32;
constexpr Duration kTrainTime = 2ms;  // in which they are sent
constexpr Duration kShortest = 25ms;  // of a phase: shorter ones measure timers
double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }
}  // namespace

MeasuredLaw::MeasuredLaw(const MeasuredConfig& config, TimePoint now)
    : config_(config),
      watch_(config.memory ? config.memory->min_rtt : config.initial_rtt),
      losses_(config.packet_bytes),
      random_(static_cast<std::minstd_rand::result_type>(config.seed)),
      line_(packets(kTrainPackets) / seconds(kTrainTime)),
      began_(now) {
  if (config_.memory && config_.memory->rate > 0) {
    // If the line is slower now, its queue says so within a round trip.
    line_ = 0.95 * static_cast<double>(config_.memory->rate);
    enter(Phase::cruise, 1, 2 * span(), now);
  } else {
    enter(Phase::train, 1, Duration::max(), now);
  }
}

MeasuredLaw::MeasuredLaw(const MeasuredConfig& config, TimePoint now, const LineWatch& watch, double rate)
    : MeasuredLaw(config, now) {
  watch_ = watch;
  set_line(rate);
  begin_drain(now);
}

void MeasuredLaw::set_line(double rate) {
  if (config_.max_rate > 0) rate = std::min(rate, static_cast<double>(config_.max_rate));
  line_ = std::max(rate, packets(2));  // two packets a second keep any line measured
}

// A round trip: the unit of all phases.
Duration MeasuredLaw::span() const { return std::max<Duration>(watch_.base_rtt(), kShortest); }

Duration MeasuredLaw::queue_target() const { return 1ms; }

// Of `up` and `down`: enough to be seen as a queue, and not more than the queue may hold.
double MeasuredLaw::step_size() const {
  if (competing_ || share_ < 0.8) return 0.25;
  return std::clamp(seconds(3ms + watch_.base_rtt() / 25) / seconds(span()), 0.03, 0.125);
}

void MeasuredLaw::enter(Phase phase, double gain, Duration time, TimePoint now) {
  phase_ = phase;
  gain_ = gain;
  phase_until_ = time == Duration::max() ? TimePoint::max() : now + time;
  ++epoch_;
  using Level = LossByRate::Level;
  const Level level = phase == Phase::up || phase == Phase::ramp ? Level::high
                      : gain < 0.99                              ? Level::low
                                                                 : Level::normal;
  epochs_[epoch_ % epochs_.size()] = {epoch_, phase, gain * line_, level};
}

const MeasuredLaw::Epoch* MeasuredLaw::find(std::uint16_t number) const {
  const Epoch& epoch = epochs_[number % epochs_.size()];
  return epoch.number == number ? &epoch : nullptr;
}

// The rate at which the line took what was sent. By what left and arrived, which chance does not move; and
// not more than what arrived can stand for, if some loss is the line's answer to too much.
std::optional<double> MeasuredLaw::carried(const RateSample& sample) const {
  if (!sample.delivery) return std::nullopt;
  const auto& delivery = *sample.delivery;
  const double time = seconds(delivery.interval);
  const double by_sending = static_cast<double>(delivery.dispatched_bytes) / time;
  const double by_arrival = static_cast<double>(delivery.delivered_bytes) / time;
  return std::min(by_sending, by_arrival / (1 - std::min(losses_.random_loss(), 0.6)));
}

void MeasuredLaw::on_sample(const RateSample& sample) {
  watch_.on_sample(sample);
  for (const EpochTally& tally : sample.epochs) {
    const Epoch* epoch = find(tally.epoch);
    if (!epoch) continue;
    losses_.add(epoch->level, epoch->rate, tally.acked_bytes, tally.lost_bytes);
  }
  switch (phase_) {
    case Phase::train:
      on_train(sample);
      break;
    case Phase::ramp:
      on_ramp(sample);
      break;
    default:
      on_settled(sample);
  }
  step(sample.now, sample.in_flight_bytes);
}

void MeasuredLaw::on_send(TimePoint now, std::uint64_t, std::uint64_t in_flight_bytes) {
  step(now, in_flight_bytes);
}

// ---- start-up

void MeasuredLaw::on_train(const RateSample& sample) {
  if (!sample.delivery || sample.delivery->application_limited) return;
  const auto& delivery = *sample.delivery;
  // Receivers take what comes within a while at once: a train that seems faster than this tells nothing.
  const double time = std::max(seconds(delivery.arrival_interval), seconds(1ms));
  const double rate = static_cast<double>(delivery.dispatched_bytes) / time;
  if (static_cast<double>(delivery.dispatched_bytes) < packets(kTrainPackets / 2)) return;
  // The whole train, or what came of it when its successors begin to be acknowledged.
  if (static_cast<double>(delivery.dispatched_bytes) < packets(0.9 * kTrainPackets) && sample.round < 2)
    return;
  const double sent_at = packets(kTrainPackets) / seconds(kTrainTime);
  train_ = rate < 0.7 * sent_at ? std::optional(rate) : std::nullopt;
  // Half of what it said, if it is the line's word; and not more than sixteen trains in a round trip, so that
  // a wrong word floods nobody.
  const double bound = 16 * packets(kTrainPackets) / seconds(span());
  set_line(std::min(train_ ? *train_ / 2 : rate, bound));
  ramp_round_ = sample.round;
  last_carried_ = 0;
  enter(Phase::ramp, 1, Duration::max(), sample.now);
}

void MeasuredLaw::on_ramp(const RateSample& sample) {
  const auto rate = carried(sample);
  const Epoch* epoch = find(sample.sent_epoch);
  for (const EpochTally& tally : sample.epochs) {
    round_acked_ += tally.acked_bytes;
    round_lost_ += tally.lost_bytes;
  }
  if (rate && !sample.delivery->application_limited) round_best_ = std::max(round_best_, *rate);
  const Duration too_much = std::max<Duration>(4ms, watch_.base_rtt() / 8);
  const bool queue_stands = watch_.queue() > too_much;
  if (queue_stands && rate) {
    // Arrivals are as far apart as the line makes them: that is its rate.
    set_line(*rate);
    begin_drain(sample.now);
    return;
  }
  if (sample.round == ramp_round_) return;
  ramp_round_ = sample.round;
  const double bytes = static_cast<double>(round_acked_ + round_lost_);
  const double loss = bytes > 0 ? static_cast<double>(round_lost_) / bytes : 0;
  const bool enough = bytes > packets(50);
  round_acked_ = round_lost_ = 0;
  if (epoch && epoch->phase == Phase::ramp && enough && loss > 2 * ramp_loss_ + 0.1) {
    // No queue, but much is dropped that was not at half the rate. What arrives is what the line carries, or
    // random loss has begun: going slower for a moment tells.
    set_line(static_cast<double>(sample.delivery ? sample.delivery->delivered_bytes : 0) /
             (sample.delivery ? seconds(sample.delivery->interval) : 1) / (1 - ramp_loss_));
    begin_drain(sample.now);
    return;
  }
  if (enough) ramp_loss_ = std::max(loss, 0.5 * ramp_loss_);
  const double best = round_best_;
  round_best_ = 0;
  if (best <= 0) return;
  if (train_) {
    if (line_ >= 0.99 * *train_) {
      set_line(std::max(best, 0.9 * line_));
      begin_up(sample.now);
      return;
    }
    set_line(std::min(*train_, 8 * std::max(line_, best)));
  } else {
    flat_rounds_ = best < 1.25 * last_carried_ ? flat_rounds_ + 1 : 0;
    last_carried_ = std::max(best, last_carried_);
    if (flat_rounds_ >= 2) {
      set_line(best);
      begin_drain(sample.now);
      return;
    }
    set_line(std::max(3 * best, line_));
    if (config_.max_rate > 0 && line_ >= static_cast<double>(config_.max_rate)) {
      begin_up(sample.now);
      return;
    }
  }
  enter(Phase::ramp, 1, Duration::max(), sample.now);
}

// ---- settled

void MeasuredLaw::begin_drain(TimePoint now) {
  const double wait = seconds(watch_.queue()) / seconds(span());
  no_drain_before_ = now + 4 * span();
  enter(Phase::drain, std::clamp(1 - wait / 1.5, 0.2, 0.75), 3 * span() + 2 * watch_.queue(), now);
}

void MeasuredLaw::begin_cruise(TimePoint now) {
  const double share = static_cast<double>(random_() % 1024) / 1024;
  const double spans = (share_ < 0.8 || competing_ ? 1.5 : 3) + 2 * share;
  enter(Phase::cruise, 1, std::chrono::duration_cast<Duration>(span() * spans), now);
}

void MeasuredLaw::begin_up(TimePoint now) {
  const double size = growing_ ? growth_ : step_size();
  up_best_ = 0;
  enter(Phase::up, 1 + size, span(), now);
  up_rate_ = gain_ * line_;
  up_epoch_ = epoch_;
}

void MeasuredLaw::after_up(TimePoint now) {
  losses_.age();
  if (up_best_ <= 0) {  // the application had too little to send
    growing_ = false;
    begin_cruise(now);
    return;
  }
  const double before = up_rate_ / (1 + (growing_ ? growth_ : step_size()));
  const double size = up_rate_ / before - 1;
  const double rise = up_best_ / before - 1;
  const bool more = rise > 0.6 * size && watch_.queue() < queue_target() + span() * size / 3;
  // A gain although the queue grew was taken from somebody else: what we have is a part of the line.
  if (!more && size > 0.02) {
    const double share = std::clamp((1 - rise / size), 0.0, 1.0);
    share_ += 0.3 * (share - share_);
  }
  set_line(line_ + (more ? 1 : 0.7) * (up_best_ - line_));
  growth_ = std::min(more ? 2 * size : step_size(), 1.0);
  growing_ = more;
  if (more)
    begin_up(now);
  else
    begin_cruise(now);
}

void MeasuredLaw::on_settled(const RateSample& sample) {
  const auto rate = carried(sample);
  if (!rate || sample.delivery->application_limited) return;
  if (sample.sent_epoch == up_epoch_) up_best_ = std::max(up_best_, *rate);
  best_.set_window(10 * span());
  best_.add(sample.now, *rate);
  const bool new_round = sample.round != last_round_;
  last_round_ = sample.round;
  const Duration queue = watch_.queue();
  if (competing_) {
    if (new_round) set_line(best_.value().value_or(line_));
    return;
  }
  // A queue far beyond what we make ourselves: the line became slower, or somebody came.
  if (queue > watch_.base_rtt() / 2 + 15ms && *rate < 0.9 * line_ && sample.now >= no_drain_before_ &&
      phase_ != Phase::drain) {
    set_line(*rate);
    begin_drain(sample.now);
    return;
  }
  if (phase_ != Phase::cruise || !new_round) return;
  const Epoch* epoch = find(sample.sent_epoch);
  const bool stands = queue > queue_target() + 2ms + watch_.base_rtt() / 32;
  if (epoch && epoch->phase == Phase::cruise && *rate < line_ && (stands || losses_.depends_on_rate()))
    set_line(std::max(line_ + 0.5 * (*rate - line_), 0.8 * line_));
}

void MeasuredLaw::judge_competition(TimePoint now) {
  watch_.watch_least_queue_for(12 * span());
  const Duration much = 6ms + watch_.base_rtt() / 8;
  if (!competing_ && now - began_ > 15 * span() && watch_.least_queue() > much) {
    competing_ = true;
    next_look_ = now + std::max<Duration>(5s, 20 * span());
    best_.clear();
  } else if (competing_ && watch_.least_queue() < much / 2) {
    competing_ = false;
    began_ = now;
  }
}

void MeasuredLaw::step(TimePoint now, std::uint64_t in_flight_bytes) {
  if (phase_ == Phase::train || phase_ == Phase::ramp) return;
  judge_competition(now);
  if (phase_ == Phase::cruise && !competing_) {
    // Holds a queue that is just there: the line is never idle, and nobody waits.
    const double error = seconds(queue_target() - watch_.queue());
    gain_ = 1 + std::clamp(error / (4 * seconds(span())), -0.05, 0.02);
  }
  const bool drained = phase_ == Phase::drain && (static_cast<double>(in_flight_bytes) <=
                                                      line_ * seconds(watch_.base_rtt()) + packets(4) ||
                                                  (watch_.queue() < 2ms));
  if (now < phase_until_ && !drained) return;
  switch (phase_) {
    case Phase::up: {
      const double size = gain_ - 1;
      // What `up` put into the queue, and a little more: so the empty line is seen now and then.
      const Duration more = std::min<Duration>(1ms, span() / 20);
      if (growing_)
        enter(Phase::down, 1, span(), now);
      else if (competing_)
        enter(Phase::down, 0.9, span(), now);
      else
        enter(Phase::down, 1 - size - seconds(more) / seconds(span()), span(), now);
      break;
    }
    case Phase::down:
      after_up(now);
      break;
    case Phase::cruise:
      if (competing_ && now >= next_look_) {
        next_look_ = now + std::max<Duration>(5s, 20 * span());
        watch_.forget_least_queue();
        enter(Phase::look, 0.5, 2 * span(), now);
      } else {
        begin_up(now);
      }
      break;
    case Phase::look:
    case Phase::drain:
      begin_cruise(now);
      break;
    case Phase::train:
    case Phase::ramp:
      break;
  }
}

std::uint64_t MeasuredLaw::pacing_rate() const {
  double rate = gain_ * line_;
  if (config_.max_rate > 0) rate = std::min(rate, static_cast<double>(config_.max_rate));
  return static_cast<std::uint64_t>(std::max(rate, packets(1)));
}

std::uint64_t MeasuredLaw::window() const {
  if (phase_ == Phase::train) return static_cast<std::uint64_t>(packets(kTrainPackets));
  const double way = seconds(watch_.base_rtt());
  const double aggregation = seconds(25ms);
  const double times = phase_ == Phase::ramp ? 4 : competing_ ? 2 : 2.5;
  return static_cast<std::uint64_t>(line_ * (times * way + aggregation) + packets(kTrainPackets));
}

const char* MeasuredLaw::describe() const {
  constexpr std::array<const char*, 7> names{"train", "ramp", "drain", "cruise", "up", "down", "look"};
  return names[static_cast<std::size_t>(phase_)];
}

std::optional<PathMemory> MeasuredLaw::memory() const {
  if (!watch_.measured() || phase_ == Phase::train || phase_ == Phase::ramp) return std::nullopt;
  return PathMemory{static_cast<std::uint64_t>(line_), watch_.base_rtt()};
}

}  // namespace longhaul::link::udp
