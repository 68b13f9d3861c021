// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/measured_law.h"

#include <algorithm>
#include <cmath>

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {
constexpr Duration kShortest = 40ms;  // of a phase: shorter ones measure timers
constexpr double kFewestInPhase = 4;  // packets in a phase: fewer do not show its rate
constexpr Duration kFirstTest = 6s;
}  // namespace

MeasuredLaw::MeasuredLaw(const MeasuredConfig& config, TimePoint now)
    : config_(config),
      watch_(config.memory ? config.memory->min_rtt : config.initial_rtt),
      losses_(config.packet_bytes),
      random_(static_cast<std::minstd_rand::result_type>(config.seed)),
      line_(packets(kTrainPackets) / seconds(kTrainTime)),
      tested_at_(now),
      next_test_(now + kFirstTest) {
  if (config_.memory && config_.memory->rate > 0) {
    // If the line is slower now, its queue shows it within a round trip.
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
  if (losses.depends_on_rate()) {
    known_random_ = losses.loss(LossByRate::Level::low);
    tested_loss_ = *known_random_;
    losses_.clear();
  }
  capacity_ = static_cast<double>(config_.max_rate);
  starting_ = false;
  set_line(rate);
  begin_drain(now);
}

void MeasuredLaw::set_line(double rate) {
  if (config_.max_rate > 0) rate = std::min(rate, static_cast<double>(config_.max_rate));
  line_ = std::max(rate, packets(2));  // two packets a second still measure the line
}

// A round trip, or the time of a few packets: the unit of all phases.
Duration MeasuredLaw::span() const {
  const Duration few = times(1s, packets(kFewestInPhase) / line_);
  return std::max({watch_.base_rtt(), Duration(kShortest), few});
}

void MeasuredLaw::enter(Phase phase, double gain, Duration time, TimePoint now) {
  phase_ = phase;
  gain_ = gain;
  phase_until_ = time == Duration::max() ? TimePoint::max() : now + time;
  ++epoch_;
  using Level = LossByRate::Level;
  const Level level = phase == Phase::up || phase == Phase::ramp ? Level::high
                      : phase == Phase::test                     ? Level::low
                                                                 : Level::normal;
  epochs_[epoch_ % epochs_.size()] = {epoch_, phase, gain * line_, level};
}

const MeasuredLaw::Epoch* MeasuredLaw::find(std::uint16_t number) const {
  const Epoch& epoch = epochs_[number % epochs_.size()];
  return epoch.number == number ? &epoch : nullptr;
}

// The rate at which the line accepted our packets. By departures and arrivals, which chance does not change;
// limited by the arrivals if some of the loss is the line's answer to excess.
std::optional<double> MeasuredLaw::carried(const std::optional<DeliveryRate>& delivery) const {
  if (!delivery) return std::nullopt;
  const double time = seconds(delivery->interval);
  const double by_sending = static_cast<double>(delivery->dispatched_bytes) / time;
  const double by_arrival = static_cast<double>(delivery->delivered_bytes) / time;
  return std::min(by_sending, by_arrival / (1 - std::min(harmless_loss(), 0.6)));
}

void MeasuredLaw::on_sample(const RateSample& sample) {
  watch_.on_sample(sample);
  probe_.on_sample(sample);
  const bool overflows = watch_.queue() > queue_target();
  busy_.on_sample(sample, overflows);
  for (const EpochTally& tally : sample.epochs) {
    const Epoch* epoch = find(tally.epoch);
    if (!epoch || overflows) continue;
    // Losses while a queue overflows, or did while we measured the line's rate, say nothing about the rate
    // found.
    if (epoch->phase != Phase::drain && epoch->phase != Phase::ramp && epoch->phase != Phase::burst)
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

void MeasuredLaw::on_send(TimePoint now, std::uint64_t bytes, std::uint64_t in_flight_bytes) {
  if (phase_ == Phase::burst && probe_.on_send(now, bytes)) rest_after_burst(now);
  step(now, in_flight_bytes);
}

void MeasuredLaw::begin_cruise(TimePoint now) {
  if (phase_ != Phase::burst && phase_ != Phase::rest && wants_burst(now)) return begin_burst(now);
  cruise_since_ = now;
  const double spans = growing_ ? 0.5 : (share() < 0.8 ? 1.5 : 3) + 2 * chance();
  enter(Phase::cruise, 1, times(span(), spans), now);
}

double MeasuredLaw::chance() { return static_cast<double>(random_() % 1024) / 1024; }

void MeasuredLaw::begin_up(TimePoint now) {
  const double size = growing_ ? growth_ : step_size();
  up_best_ = 0;
  up_piece_ = 0;
  up_piece_bytes_ = 0;
  up_queue_at_answer_.reset();
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
  if (up_best_ <= 0 && up_piece_ > 0 && size >= 0.01) return grow_by_piece(now);
  if (up_best_ <= 0 || size < 0.01) {  // the application had too little to send, or the rate is bounded
    growing_ = false;
    begin_cruise(now);
    return;
  }
  const double rise = up_best_ / up_base_ - 1;
  // There was room if nearly all of it arrived in time, and it did not go into the queue.
  const double after = up_answered_ ? up_queue_after_ : seconds(watch_.queue());
  const double grown = after - up_queue_;
  const bool more = rise > 0.6 * size && grown < 0.4 * size * seconds(span());
  // Neither a queue nor losses caused by this sender: then the line can carry more than measured, and the gap
  // was local. On a busy host timers are late; a client that waits for each block leaves gaps.
  if (rise < 0 && (after < seconds(kQueue) || (is_calm() && share() > 0.8)) && !known_random_) {
    // A test shows whether we cause losses; before the test that is unknown, and a reason for one.
    if (!is_harmless(losses_.total_loss())) test_soon();
    growing_ = false;
    begin_cruise(now);
    return;
  }
  if (rise < 0 && drain_standstill(now)) {
    // A measurement over a round trip includes the stall.
    growing_ = false;
    if (phase_ != Phase::drain) begin_cruise(now);
    return;
  }
  learn_share(size, after, more);
  set_line(line_ + (more ? 1 : 0.7) * (up_best_ - line_));
  draw_even(now, more);
  // A single result may be chance, or capacity that other traffic left for a moment.
  growth_ = std::min(more ? (growing_ ? 2 : 1) * size : 0, 1.0);
  growing_ = more;
  if (more) {
    begin_up(now);
  } else if (watch_.queue() > queue_target() && size > 0.2 && share() > 0.8) {
    losses_.clear();
    begin_drain(now);
  } else {
    begin_cruise(now);
  }
}

void MeasuredLaw::on_settled(const RateSample& sample) {
  const auto rate = carried(sample.delivery);
  if (!rate || sample.delivery->application_limited) {
    note_piece(sample);
    // The state of the queue at the last full packet is no news.
    if (phase_ == Phase::cruise && sample.forward_delay && LineWatch::is_full(sample)) ease(sample.now);
    return;
  }
  if (phase_ == Phase::cruise)
    arrived_ = static_cast<double>(sample.delivery->delivered_bytes) / seconds(sample.delivery->interval);
  if (sample.sent_epoch == up_epoch_) {
    if (!up_queue_at_answer_) up_queue_at_answer_ = seconds(watch_.queue());
    up_best_ = std::max(up_best_, *rate);
  }
  if (sample.sent_epoch == static_cast<std::uint16_t>(up_epoch_ + 1) && !up_answered_) {
    up_answered_ = true;
    up_queue_after_ = seconds(watch_.queue());
  }
  carried_ = *rate;
  const bool new_round = sample.round != last_round_;
  last_round_ = sample.round;
  capacity_ = std::max(*rate, capacity_ * (1 - std::min(seconds(sample.now - capacity_at_) / 120, 0.1)));
  capacity_at_ = sample.now;
  if (starting_) {
    // Packets sent before the rate was known, and slowly while that queue drained, met our own queue; later
    // measurements would show only our slowness.
    const Epoch* epoch = find(sample.sent_epoch);
    if (!epoch || epoch->phase == Phase::train || epoch->phase == Phase::ramp || epoch->phase == Phase::drain)
      return;
    if (!found_at_) found_at_ = sample.sent_at;
    starting_ = sample.sent_at - sample.delivery->interval < *found_at_;
  }
  if (!starting_ && watch_.queue() > queue_limit() && sample.now >= no_drain_before_ &&
      phase_ != Phase::drain) {
    if (drain_standstill(sample.now)) return;
    // The line became slower, or other traffic started.
    if (const auto busy = busy_rate(); busy && *busy < 0.9 * line_ && may_give_way(sample.now))
      return give_way(sample.now, *busy);
  }
  if (!new_round) return;
  if (phase_ != Phase::cruise) return;
  if (known_random_ && *rate < line_)
    set_line(line_ + 0.5 * (*rate - line_));
  else
    ease(sample.now);
}

// A client that waits for each piece before it asks for the next never keeps the line busy long enough to
// measure it. Such a piece only shows that the line carries more than estimated.
void MeasuredLaw::note_piece(const RateSample& sample) {
  auto piece = sample.beginning;
  if (!piece || piece->application_limited || sample.sent_epoch != up_epoch_) return;
  if (static_cast<double>(piece->dispatched_bytes) < packets(kTrainPackets / 2)) return;
  if (piece->dispatched_bytes <= up_piece_bytes_) return;
  up_piece_bytes_ = piece->dispatched_bytes;
  piece->interval = std::max<Duration>(piece->interval, 1ms);  // receivers take what comes within it at once
  up_piece_ = *carried(piece);
}

void MeasuredLaw::grow_by_piece(TimePoint now) {
  const double size = up_rate_ / up_base_ - 1;
  // A pause is followed by a short burst, which says nothing about the intended rate.
  const double rise = std::min(up_piece_, up_rate_) / up_base_ - 1;
  // A policer lets short bursts pass at any rate, and a client that waits for answers gains nothing from even
  // shorter ones.
  const bool is_long = static_cast<double>(up_piece_bytes_) > up_base_ * seconds(2ms);
  const bool harmless = is_harmless(losses_.total_loss());
  if (!harmless && !known_random_) test_soon();
  growing_ = rise > 0.6 * size && is_calm() && is_long && harmless;
  if (!growing_) return begin_cruise(now);
  growth_ = std::min(2 * size, 1.0);
  set_line(line_ * (1 + rise));
  arrived_ = 0;  // at another rate
  learnt_by_piece_ = true;
  begin_up(now);
}

void MeasuredLaw::step(TimePoint now, std::uint64_t in_flight_bytes) {
  if (phase_ == Phase::train || phase_ == Phase::ramp || competing()) return;
  watch_mean_queue(now);
  const auto busy = busy_rate();
  if (busy && phase_ != Phase::drain && now - mean_since_ > 8 * span() &&
      mean_queue_ > seconds(queue_target()) && watch_.queue() > queue_target()) {
    if (!may_give_way(now)) return begin_competing(now);
    give_way(now, std::min(line_, *busy));
  }
  if (phase_ == Phase::cruise) {
    const double error = seconds(kQueue - watch_.queue());
    gain_ = 1 + std::clamp(error / (4 * seconds(span())), -0.05, 0.02);
  }
  // A few packets are little on a fast line and a queue on a slow one.
  const double few = std::clamp(line_ * seconds(2ms), packets(1), packets(4));
  const bool drained = phase_ == Phase::drain &&
                       (static_cast<double>(in_flight_bytes) <= line_ * seconds(watch_.base_rtt()) + few ||
                        watch_.queue() < 2ms);
  if (now < phase_until_ && !drained) return;
  switch (phase_) {
    case Phase::up: {
      // The queue that `up` caused, and a little more: so that the empty line is seen occasionally.
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
        // A sender of one piece per round trip sends too little in one to decide.
        const double spans = up_best_ > 0 ? 1 : 3;
        enter(Phase::test, LossByRate::trial_gain(losses_.total_loss()), times(span(), spans), now);
      } else if (is_calm() || now > cruise_since_ + 8 * span()) {
        begin_up(now);
      } else {
        // Not at once when it is calm: other links wait for that too, and links that speed up together learn
        // nothing.
        phase_until_ = now + times(span(), 0.3 + chance());
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
      // Only a queue that persists after backing off belongs to other traffic.
      mean_queue_ = 0;
      mean_since_ = mean_at_ = now;
      begin_cruise(now);
      break;
    case Phase::burst:  // there was too little to send
    case Phase::rest:
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
  constexpr std::array<const char*, 11> names{"train", "ramp",    "drain", "cruise", "up",  "down",
                                              "test",  "compete", "look",  "burst",  "rest"};
  return names[static_cast<std::size_t>(phase_)];
}

RateView MeasuredLaw::view() const {
  RateView view{.law = RateView::Law::measured,
                .phase = describe(),
                .line_rate = static_cast<std::uint64_t>(line_),
                .queue = watch_.queue(),
                .competes = competing(),
                .policed = policed()};
  if (watch_.measured()) view.base_rtt = watch_.base_rtt();
  return view;
}

std::optional<PathMemory> MeasuredLaw::memory() const {
  if (!watch_.measured() || phase_ == Phase::train || phase_ == Phase::ramp) return std::nullopt;
  // Too little was sent to learn anything new.
  if (config_.memory && carried_ == 0 && !learnt_by_piece_ && !competing()) return config_.memory;
  return PathMemory{static_cast<std::uint64_t>(line_), watch_.base_rtt()};
}

}  // namespace longhaul::link::udp
