// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/measured_law.h"

#include <algorithm>
#include <cmath>

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {
constexpr Duration kShortest = 40ms;  // of a phase: shorter ones measure timers
constexpr double kFewestInPhase = 4;  // packets in a phase: fewer do not show its rate
}  // namespace

MeasuredLaw::MeasuredLaw(const MeasuredConfig& config, TimePoint now)
    : config_(config),
      watch_(config.memory ? config.memory->min_rtt : config.initial_rtt),
      tests_(config.packet_bytes, now),
      random_(static_cast<std::minstd_rand::result_type>(config.seed)),
      line_(packets(StartRamp::kTrainPackets) / seconds(StartRamp::kTrainTime)),
      start_(config.packet_bytes),
      share_(config.packet_bytes, static_cast<double>(config.max_rate)),
      competition_(config.packet_bytes) {
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
  tests_.adopt(losses);
  epochs_ = {};
  epoch_ = first_epoch;
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
  return std::min(by_sending, by_arrival / (1 - std::min(tests_.harmless_loss(), 0.6)));
}

void MeasuredLaw::on_sample(const RateSample& sample) {
  watch_.on_sample(sample);
  share_.on_sample(sample);
  const bool overflows = watch_.queue() > queue_target();
  standing_.on_sample(sample, overflows);
  for (const EpochTally& tally : sample.epochs) {
    const Epoch* epoch = find(tally.epoch);
    if (!epoch || overflows) continue;
    // Losses while a queue overflows, or did while we measured the line's rate, say nothing about the rate
    // found.
    if (epoch->phase != Phase::drain && epoch->phase != Phase::ramp && epoch->phase != Phase::burst)
      tests_.losses().add(epoch->level, epoch->rate, tally);
  }
  switch (phase_) {
    case Phase::train:
    case Phase::ramp:
      on_start(sample);
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
  if (phase_ == Phase::burst && share_.on_send(now, bytes)) rest_after_burst(now);
  step(now, in_flight_bytes);
}

void MeasuredLaw::begin_cruise(TimePoint now) {
  if (phase_ != Phase::burst && phase_ != Phase::rest && !growing_ && !starting_ &&
      share_.wants_burst(now, line_, watch_, queue_target()))
    return begin_burst(now);
  cruise_since_ = now;
  const double spans = growing_ ? 0.5 : (share() < 0.8 ? 1.5 : 3) + 2 * chance();
  enter(Phase::cruise, 1, times(span(), spans), now);
}

double MeasuredLaw::chance() { return static_cast<double>(random_() % 1024) / 1024; }

void MeasuredLaw::begin_up(TimePoint now) {
  const double size = growing_ ? growth_ : step_size();
  enter(Phase::up, 1 + size, span(), now);
  faster_.begin(epoch_, line_, static_cast<double>(pacing_rate()), seconds(watch_.queue()));
}

void MeasuredLaw::after_up(TimePoint now) {
  tests_.losses().age();
  const double size = faster_.size();
  if (faster_.best() <= 0 && faster_.piece_rate() > 0 && size >= 0.01) return grow_by_piece(now);
  if (faster_.best() <= 0 || size < 0.01) {  // the application had too little to send, or no more is allowed
    growing_ = false;
    begin_cruise(now);
    return;
  }
  const double rise = faster_.rise();
  // There was room if nearly all of it arrived in time, and the queue did not take it.
  const double after = faster_.queue_after(seconds(watch_.queue()));
  const double grown = after - faster_.queue_before();
  const bool more = rise > 0.6 * size && grown < 0.4 * size * seconds(span());
  // Neither a queue nor losses caused by this sender: then the line can carry more than measured, and the gap
  // was local. On a busy host timers are late; a client that waits for each block leaves gaps.
  if (rise < 0 && (after < seconds(kQueue) || (is_calm() && share() > 0.8)) && !policed()) {
    // Whether losses are of our making a test tells, and before it is a reason to test.
    if (!tests_.is_harmless()) tests_.test_soon();
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
  learn_share(after, more, now);
  // Once may be chance, or capacity that other traffic left for a moment.
  growth_ = std::min(more ? (growing_ ? 2 : 1) * size : 0, 1.0);
  growing_ = more;
  if (more) {
    begin_up(now);
  } else if (watch_.queue() > queue_target() && size > 0.2 && share() > 0.8) {
    tests_.losses().clear();
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
  faster_.on_measured(sample, *rate, seconds(watch_.queue()));
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
    if (const auto busy = busy_rate();
        busy && *busy < 0.9 * line_ && standing_.may_give_way(sample.now, span()))
      return give_way(sample.now, *busy);
  }
  if (!new_round) return;
  if (phase_ != Phase::cruise) return;
  if (policed() && *rate < line_)
    set_line(line_ + 0.5 * (*rate - line_));
  else
    ease(sample.now);
}

void MeasuredLaw::note_piece(const RateSample& sample) {
  if (!faster_.is_longer_piece(sample, packets(StartRamp::kTrainPackets / 2))) return;
  auto piece = sample.beginning;
  piece->interval = std::max<Duration>(piece->interval, 1ms);  // receivers take what comes within it at once
  faster_.on_piece(piece->dispatched_bytes, *carried(piece));
}

void MeasuredLaw::grow_by_piece(TimePoint now) {
  const double size = faster_.size();
  // A pause is made up for by a short burst, which says nothing of the rate meant.
  const double rise = std::min(faster_.piece_rate(), faster_.rate()) / faster_.base() - 1;
  // A policer lets short bursts pass at any rate, and a client that waits for answers gains nothing from even
  // shorter ones.
  const bool is_long = static_cast<double>(faster_.piece_bytes()) > faster_.base() * seconds(2ms);
  const bool harmless = tests_.is_harmless();
  if (!harmless && !policed()) tests_.test_soon();
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
  standing_.watch_mean(now, watch_.queue(), span());
  const auto busy = busy_rate();
  if (busy && phase_ != Phase::drain && standing_.persists(now, queue_target(), span()) &&
      watch_.queue() > queue_target()) {
    if (!standing_.may_give_way(now, span())) return begin_competing(now);
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
      const double size = faster_.size();
      enter(Phase::down, growing_ ? 1 : 1 - size - seconds(more) / seconds(span()), span(), now);
      break;
    }
    case Phase::down:
      // The queue that `up` made delays its answer.
      if (faster_.answered() || now > phase_until_ + span() + 2 * watch_.queue())
        after_up(now);
      else
        gain_ = 1;
      break;
    case Phase::cruise:
      if (tests_.is_due(now, span())) {
        tests_.losses().age(0.5);
        // A sender of one piece per round trip sends too little in one to decide.
        const double spans = faster_.best() > 0 ? 1 : 3;
        enter(Phase::test, LossByRate::trial_gain(tests_.losses().total_loss()), times(span(), spans), now);
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
      standing_.forget_mean(now);
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

void MeasuredLaw::on_start(const RateSample& sample) {
  using Next = StartRamp::Next;
  const double most = config_.max_rate > 0 ? static_cast<double>(config_.max_rate) : 1e18;
  const StartRamp::Around around{watch_, span(), tests_.losses().total_loss(), line_, most};
  const StartRamp::Step step = phase_ == Phase::train
                                   ? start_.on_train(sample, around)
                                   : start_.on_ramp(sample, carried(sample.delivery), around);
  if (step.capacity) capacity_ = *step.capacity;
  if (step.next == Next::stay) return;
  set_line(step.rate);
  if (step.next == Next::search) {
    growing_ = true;
    growth_ = 0.25;
  }
  if (step.next == Next::ramp) return enter(Phase::ramp, 1, Duration::max(), sample.now);
  if (step.next == Next::cruise) return begin_cruise(sample.now);
  begin_drain(sample.now);
}

std::uint64_t MeasuredLaw::pacing_rate() const {
  double rate = gain_ * line_;
  if (config_.max_rate > 0) rate = std::min(rate, static_cast<double>(config_.max_rate));
  return static_cast<std::uint64_t>(std::max(rate, packets(1)));
}

std::uint64_t MeasuredLaw::window() const {
  if (phase_ == Phase::train) return static_cast<std::uint64_t>(packets(StartRamp::kTrainPackets));
  if (competing()) return static_cast<std::uint64_t>(packets(competition_.window_packets()));
  const double way = seconds(watch_.base_rtt());
  const double aggregation = seconds(25ms);  // an ACK may come so much later, for many packets
  return static_cast<std::uint64_t>(line_ * ((phase_ == Phase::ramp ? 4 : 2.5) * way + aggregation) +
                                    packets(StartRamp::kTrainPackets));
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
