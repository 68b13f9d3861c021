// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/measured_law.h"

#include <algorithm>
#include <cmath>

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {
constexpr Duration kShortest = 25ms;  // of a phase: shorter ones measure timers
constexpr Duration kQueue = 1ms;      // that is kept, so that the line is never idle
constexpr double kMuchLoss = 0.03;    // worth a test of what it depends on
double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }
Duration times(Duration time, double factor) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds(time) * factor));
}
}  // namespace

MeasuredLaw::MeasuredLaw(const MeasuredConfig& config, TimePoint now)
    : config_(config),
      watch_(config.memory ? config.memory->min_rtt : config.initial_rtt),
      losses_(config.packet_bytes),
      random_(static_cast<std::minstd_rand::result_type>(config.seed)),
      line_(packets(kTrainPackets) / seconds(kTrainTime)) {
  if (config_.memory && config_.memory->rate > 0) {
    // If the line is slower now, its queue says so within a round trip.
    line_ = 0.95 * static_cast<double>(config_.memory->rate);
    enter(Phase::cruise, 1, 2 * span(), now);
  } else {
    enter(Phase::train, 1, Duration::max(), now);
  }
}

MeasuredLaw::MeasuredLaw(const MeasuredConfig& config, TimePoint now, const LineWatch& watch,
                         const LossByRate& losses, double rate, std::uint16_t first_epoch)
    : MeasuredLaw(config, now) {
  watch_ = watch;
  losses_ = losses;
  epochs_ = {};
  epoch_ = first_epoch;
  if (config_.max_rate > 0) capacity_.add(now, static_cast<double>(config_.max_rate));
  set_line(rate);
  begin_drain(now);
}

void MeasuredLaw::set_line(double rate) {
  if (config_.max_rate > 0) rate = std::min(rate, static_cast<double>(config_.max_rate));
  line_ = std::max(rate, packets(2));  // two packets a second keep any line measured
}

// A round trip: the unit of all phases.
Duration MeasuredLaw::span() const { return std::max<Duration>(watch_.base_rtt(), kShortest); }

// Of `up` and `down`: enough to be seen as a queue, and not more than the queue may hold. The less of the
// line is ours, the larger: so shares become equal.
double MeasuredLaw::step_size() const {
  const double alone = std::clamp(seconds(3ms + watch_.base_rtt() / 25) / seconds(span()), 0.03, 0.125);
  return std::max(alone, std::min(0.5 * (0.95 - share_), 0.35));
}

// Hardly anything waits in the queue.
bool MeasuredLaw::is_calm() const { return watch_.queue() < kQueue + 2ms + watch_.base_rtt() / 32; }

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
    losses_.add(epoch->level, epoch->rate, tally);
  }
  switch (phase_) {
    case Phase::train:
      on_train(sample);
      break;
    case Phase::ramp:
      on_ramp(sample);
      break;
    case Phase::compete:
    case Phase::look:
      on_competing(sample);
      break;
    default:
      on_settled(sample);
  }
  step(sample.now, sample.in_flight_bytes);
}

void MeasuredLaw::on_send(TimePoint now, std::uint64_t, std::uint64_t in_flight_bytes) {
  step(now, in_flight_bytes);
}

void MeasuredLaw::begin_drain(TimePoint now) {
  const double wait = seconds(watch_.queue()) / seconds(span());
  no_drain_before_ = now + 4 * span();
  enter(Phase::drain, std::clamp(1 - wait / 1.5, 0.2, 0.75), 3 * span() + 2 * watch_.queue(), now);
}

void MeasuredLaw::begin_cruise(TimePoint now) {
  const double chance = static_cast<double>(random_() % 1024) / 1024;
  const double spans = growing_ ? 0.5 : (share_ < 0.8 ? 1.5 : 3) + 2 * chance;
  enter(Phase::cruise, 1, times(span(), spans), now);
}

void MeasuredLaw::begin_up(TimePoint now) {
  const double size = growing_ ? growth_ : step_size();
  up_best_ = 0;
  up_answered_ = false;
  enter(Phase::up, 1 + size, span(), now);
  up_base_ = line_;
  up_queue_ = seconds(watch_.queue());
  up_rate_ = static_cast<double>(pacing_rate());
  up_epoch_ = epoch_;
}

void MeasuredLaw::after_up(TimePoint now) {
  losses_.age();
  const double size = up_rate_ / up_base_ - 1;
  if (up_best_ <= 0 || size < 0.01) {  // the application had too little to send, or no more is allowed
    growing_ = false;
    begin_cruise(now);
    return;
  }
  const double rise = up_best_ / up_base_ - 1;
  // There was room if nearly all of it arrived in time, and the queue did not take it.
  const double grown = seconds(watch_.queue()) - up_queue_;
  const bool more = rise > 0.6 * size && grown < 0.4 * size * seconds(span());
  if (!more) {
    // A gain although the queue grew was taken from somebody else: what we have is a part of the line.
    const double share = std::clamp(((1 + size) / (1 + std::max(rise, 0.0)) - 1) / size, 0.0, 1.0);
    share_ += 0.3 * (share - share_);
  }
  set_line(line_ + (more ? 1 : 0.7) * (up_best_ - line_));
  // Once may be chance, or room that somebody else left for a moment.
  growth_ = std::min(more ? (growing_ ? 2 : 1) * size : 0, 1.0);
  growing_ = more;
  if (more)
    begin_up(now);
  else if (watch_.queue() > much_queue() && size > 0.2 && share_ > 0.8)
    begin_drain(now);
  else
    begin_cruise(now);
}

bool MeasuredLaw::test_is_due(TimePoint now) const {
  const double loss = losses_.total_loss();
  if (loss < kMuchLoss) return false;
  return now >= next_test_ || loss > 1.5 * tested_loss_ + kMuchLoss;
}

void MeasuredLaw::after_test(TimePoint now) {
  tested_loss_ = losses_.total_loss();
  if (losses_.depends_on_rate()) {
    // What arrived at the lower rate is not less than what the line carries, unless it dropped nothing any
    // more.
    test_interval_ = 4 * span();
  } else {
    test_interval_ = std::min<Duration>(3 * std::max<Duration>(test_interval_, 2s), 60s);
  }
  next_test_ = now + test_interval_;
}

void MeasuredLaw::on_settled(const RateSample& sample) {
  const auto rate = carried(sample);
  if (!rate || sample.delivery->application_limited) return;
  if (sample.sent_epoch == up_epoch_) up_best_ = std::max(up_best_, *rate);
  if (sample.sent_epoch == static_cast<std::uint16_t>(up_epoch_ + 1)) up_answered_ = true;
  const bool new_round = sample.round != last_round_;
  last_round_ = sample.round;
  const Duration queue = watch_.queue();
  if (queue > kQueue) capacity_.add(sample.now, *rate);
  // A queue far beyond what we make ourselves: the line became slower, or somebody came.
  if (queue > watch_.base_rtt() / 2 + 15ms && *rate < 0.9 * line_ && sample.now >= no_drain_before_ &&
      phase_ != Phase::drain) {
    set_line(*rate);
    growing_ = false;
    begin_drain(sample.now);
    return;
  }
  if (!new_round) return;
  const Epoch* epoch = find(sample.sent_epoch);
  if (phase_ != Phase::cruise || !epoch) return;
  if (losses_.depends_on_rate() && *rate < line_) {
    set_line(std::max(line_ + 0.7 * (*rate - line_), 0.6 * line_));
    losses_.age(0.3);
  } else if (!is_calm()) {
    // All who share the queue see the same of it, and give way by the same part.
    set_line(line_ * (1 - std::min(0.1, 0.25 * seconds(queue - kQueue) / seconds(span()))));
  }
}

void MeasuredLaw::step(TimePoint now, std::uint64_t in_flight_bytes) {
  if (phase_ == Phase::train || phase_ == Phase::ramp || competing()) return;
  watch_mean_queue(now);
  if (now - mean_since_ > 8 * span() && mean_queue_ > seconds(much_queue()) &&
      watch_.queue() > much_queue()) {
    begin_competing(now);
    return;
  }
  if (phase_ == Phase::cruise) {
    const double error = seconds(kQueue - watch_.queue());
    gain_ = 1 + std::clamp(error / (4 * seconds(span())), -0.05, 0.02);
  }
  const bool drained = phase_ == Phase::drain && (static_cast<double>(in_flight_bytes) <=
                                                      line_ * seconds(watch_.base_rtt()) + packets(4) ||
                                                  watch_.queue() < 2ms);
  if (now < phase_until_ && !drained) return;
  switch (phase_) {
    case Phase::up: {
      // What `up` put into the queue, and a little more: so the empty line is seen now and then.
      const Duration more = std::min<Duration>(1ms, span() / 20);
      const double size = up_rate_ / up_base_ - 1;
      enter(Phase::down, growing_ ? 1 : 1 - size - seconds(more) / seconds(span()), span(), now);
      break;
    }
    case Phase::down:
      // The queue that `up` made delays its answer.
      if (up_answered_ || now > phase_until_ + span() + 2 * watch_.queue())
        after_up(now);
      else
        gain_ = 1;
      break;
    case Phase::cruise:
      if (test_is_due(now)) {
        losses_.age(0.5);
        enter(Phase::test, LossByRate::trial_gain(losses_.total_loss()), span(), now);
      } else if (is_calm() || now > phase_until_ + 4 * span()) {
        begin_up(now);
      }
      break;
    case Phase::test:
      // Its answer takes a round trip.
      gain_ = 1;
      if (now < phase_until_ + span() + span() / 4) break;
      after_test(now);
      begin_cruise(now);
      break;
    case Phase::drain:
      // Only what stands although we gave way was somebody else's.
      mean_queue_ = 0;
      mean_since_ = mean_at_ = now;
      begin_cruise(now);
      break;
    default:
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
  if (competing()) return static_cast<std::uint64_t>(packets(cubic_.window()));
  const double way = seconds(watch_.base_rtt());
  const double aggregation = seconds(25ms);  // an ACK may come so much later, for many packets
  return static_cast<std::uint64_t>(line_ * ((phase_ == Phase::ramp ? 4 : 2.5) * way + aggregation) +
                                    packets(kTrainPackets));
}

const char* MeasuredLaw::describe() const {
  constexpr std::array<const char*, 9> names{"train", "ramp", "drain",   "cruise", "up",
                                             "down",  "test", "compete", "look"};
  return names[static_cast<std::size_t>(phase_)];
}

std::optional<PathMemory> MeasuredLaw::memory() const {
  if (!watch_.measured() || phase_ == Phase::train || phase_ == Phase::ramp) return std::nullopt;
  return PathMemory{static_cast<std::uint64_t>(line_), watch_.base_rtt()};
}

}  // namespace longhaul::link::udp
