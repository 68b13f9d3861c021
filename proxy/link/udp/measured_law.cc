// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/measured_law.h"

#include <algorithm>
#include <utility>

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {

constexpr double kLost = 8;          // a rate below 1/8 of what the line seemed to carry counts as lost
constexpr Duration kMostAhead = 1s;  // of the line's time, what may be sent beyond the round trips

bool knows_rate(const MeasuredConfig& config) { return config.memory && config.memory->rate > 0; }

// The rate of the first packets, which are sent as one burst.
double train_rate(std::uint32_t packet_bytes) {
  return StartRamp::kTrainPackets * packet_bytes / seconds(StartRamp::kTrainTime);
}

LineTerms terms_of(const MeasuredConfig& config) {
  // If a remembered line is slower now, its queue shows it within a round trip.
  const double rate = knows_rate(config)
                          ? 0.95 * config.memory->trust * static_cast<double>(config.memory->rate)
                          : train_rate(config.packet_bytes);
  return {.packet_bytes = config.packet_bytes,
          .max_rate = config.max_rate,
          .initial_rtt = config.memory ? config.memory->min_rtt : config.initial_rtt,
          .rate = rate};
}

}  // namespace

MeasuredLaw::MeasuredLaw(const MeasuredConfig& config, TimePoint now)
    : config_(config),
      line_(terms_of(config), now),
      start_(config.packet_bytes, config.max_rate),
      first_(true),
      cruise_(config.seed),
      compete_(config.packet_bytes) {
  if (knows_rate(config)) promised_ = line_.rate();
  begin(knows_rate(config) ? Plan{Phase::cruise, 1, 2 * line_.span()} : Plan{Phase::train}, now);
}

MeasuredLaw::MeasuredLaw(const MeasuredConfig& config, TimePoint now, const LineWatch& watch,
                         const LossByRate& losses, double rate, std::uint16_t first_epoch)
    : MeasuredLaw(config, now) {
  line_.watch = watch;
  line_.tests.adopt(losses);
  line_.set_rate(rate);
  capacity_.set(static_cast<double>(config_.max_rate));
  experiments_ = Experiments(first_epoch);
  first_ = FirstMeasurement(false);
  promised_ = std::max(rate, static_cast<double>(config_.max_rate));
  drain(now);
}

// ---- What a sample says.

void MeasuredLaw::on_sample(const RateSample& sample) {
  const bool doubted = line_.watch.doubts();
  if (starting()) start_.note(sample);
  LineModel::Use use{.competes = competing()};
  if (!starting() && !first_.pending()) use.capacity = capacity_.value();
  line_.on_sample(sample, use);
  note_losses(sample);
  if (line_.watch.became_longer()) return on_longer_path(sample.now);
  // It was a queue. What arrived meanwhile was ours, not the line's rate.
  if (doubted && !line_.watch.doubts() && !starting() && !competing() &&
      line_.standing.came_at_once(line_.watch) &&
      line_.standing.believes_standstills(sample.now, line_.span()))
    drain_standstill(sample.now);
  if (starting()) {
    on_start(sample);
  } else if (competing()) {
    on_competing(sample);
  } else {
    on_settled(sample);
  }
  step(sample.now, sample.in_flight_bytes);
}

// Losses while a queue overflows, or did while the line's rate was measured, say nothing about the rate
// found.
void MeasuredLaw::note_losses(const RateSample& sample) {
  if (line_.overflows()) return;
  for (const EpochTally& tally : sample.epochs) {
    const auto* past = experiments_.find(tally.epoch);
    if (past && measures_loss(past->phase))
      line_.tests.losses().add(level_of(past->phase), past->rate, tally);
  }
}

// What the law did about the queue that was none is undone.
void MeasuredLaw::on_longer_path(TimePoint now) {
  if (starting()) return;
  if (const auto slower = line_.undo_doubt()) capacity_.set(*slower);
  if (competing()) return stop_competing(now);
  line_.standing.forget_giving_way();
  line_.standing.forget_mean(now);
  cruise(now);
}

void MeasuredLaw::on_start(const RateSample& sample) {
  using Next = StartRamp::Next;
  const StartRamp::Step found =
      in(Phase::train) ? start_.on_train(sample, line_) : start_.on_ramp(sample, line_);
  if (found.capacity) capacity_.set(*found.capacity);
  if (found.next == Next::stay) return;
  promised_ = std::max(promised_, in(Phase::ramp) && found.next == Next::ramp ? line_.rate() : found.rate);
  line_.set_rate(found.rate);
  if (found.next == Next::search) probe_.grow(0.25);
  if (found.next == Next::ramp) return begin({Phase::ramp}, sample.now);
  if (found.next == Next::cruise) return cruise(sample.now);
  drain(sample.now);
}

void MeasuredLaw::on_settled(const RateSample& sample) {
  const auto rate = line_.carried(sample.delivery);
  if (rate && !sample.delivery->application_limited) return on_measured(sample, *rate);
  probe_.on_piece(sample, line_);
  // The state of the queue at the last full packet is no news.
  if (in(Phase::cruise) && sample.forward_delay && LineWatch::is_full(sample)) ease(sample.now);
}

void MeasuredLaw::on_measured(const RateSample& sample, double rate) {
  const TimePoint now = sample.now;
  if (in(Phase::cruise))
    test_.on_arrivals(static_cast<double>(sample.delivery->delivered_bytes) /
                      seconds(sample.delivery->interval));
  probe_.on_measured(sample, rate, line_);
  measured_ = rate > 0;
  const bool new_round = sample.round != std::exchange(last_round_, sample.round);
  capacity_.on_carried(rate, now);
  promised_ = std::max(promised_, rate);
  if (first_.pending() && !first_.counts(sample, experiments_.find(sample.sent_epoch))) return;
  if (!first_.pending() && !line_.watch.doubts() && line_.watch.queue() > line_.queue_limit() &&
      may_drain(now)) {
    if (line_.stood_still(now)) return drain_standstill(now);
    // The line became slower, or other traffic started.
    if (const auto busy = line_.busy_rate();
        busy && *busy < 0.9 * line_.rate() && line_.standing.may_give_way(now, line_.span()))
      return give_way(now, *busy);
  }
  if (!new_round || !in(Phase::cruise)) return;
  if (policed() && rate < line_.rate())
    return line_.lower_for_losses(line_.rate() + 0.5 * (rate - line_.rate()));
  ease(now);
}

void MeasuredLaw::on_competing(const RateSample& sample) {
  const bool new_round = sample.round != std::exchange(last_round_, sample.round);
  compete_.on_sample(sample, line_, capacity_.value(), new_round);
  for (const Phase phase : {Phase::compete, Phase::look}) {  // a look may be over as it begins
    if (!in(phase)) continue;
    const auto plan = compete_.next(sample.now, experiments_, line_);
    if (!plan) continue;
    if (plan->phase == Phase::drain) return stop_competing(sample.now);
    begin(*plan, sample.now);
  }
}

// ---- What follows.

void MeasuredLaw::on_send(TimePoint now, std::uint64_t bytes, std::uint64_t in_flight_bytes) {
  if (in(Phase::burst) && line_.sharing.on_send(now, bytes)) begin(BurstPhase::rest(line_), now);
  step(now, in_flight_bytes);
}

void MeasuredLaw::step(TimePoint now, std::uint64_t in_flight_bytes) {
  if (starting() || competing()) return;
  answer_standing_queue(now);
  if (competing()) return;
  if (line_.watch.doubts_rate() && !in(Phase::drain)) return wait_for_answer(now);
  if (is_lost(now)) return begin_anew(now);
  if (in(Phase::cruise)) experiments_.set_gain(CruisePhase::gain(line_));
  const bool drained = in(Phase::drain) && DrainPhase::is_over(line_, in_flight_bytes);
  if (now >= experiments_.ends() || drained) next_phase(now);
}

// What is sent now tells whether the path has become longer and slower, and nothing else.
void MeasuredLaw::wait_for_answer(TimePoint now) {
  if (!in(Phase::cruise)) begin(cruise_.begin(now, line_, probe_.growing()), now);
  experiments_.set_gain(1);
}

void MeasuredLaw::answer_standing_queue(TimePoint now) {
  StandingQueue& standing = line_.standing;
  const Duration span = line_.span();
  standing.watch_mean(now, line_.watch.queue(), span);
  const auto busy = line_.busy_rate();
  if (!busy || line_.watch.doubts() || in(Phase::drain) ||
      !standing.persists(now, line_.queue_target(), span) || !line_.overflows())
    return;
  if (!standing.may_give_way(now, span)) return begin(compete_.begin(now, line_, capacity_.value()), now);
  give_way(now, std::min(line_.rate(), *busy));
}

void MeasuredLaw::next_phase(TimePoint now) {
  switch (experiments_.phase()) {
    case Phase::cruise:
      return after_cruise(now);
    case Phase::up:
      return begin(probe_.down(line_), now);
    case Phase::down:
      if (probe_.is_answered(now, experiments_.ends(), line_)) return after_probe(now);
      return experiments_.set_gain(1);
    case Phase::test:
      experiments_.set_gain(1);
      if (!TestPhase::is_answered(now, experiments_.ends(), line_)) return;
      if (test_.finish(now, line_)) probe_.stop_growing();
      return cruise(now);
    case Phase::drain:
      // Only a queue that persists after backing off belongs to other traffic.
      line_.standing.forget_mean(now);
      return cruise(now);
    case Phase::burst:  // there was too little to send
    case Phase::rest:
      return cruise(now);
    case Phase::train:
    case Phase::ramp:
    case Phase::compete:
    case Phase::look:
      return;
  }
}

void MeasuredLaw::after_cruise(TimePoint now) {
  switch (cruise_.next(now, line_)) {
    case CruisePhase::Next::test:
      return begin(TestPhase::begin(line_, probe_.in_pieces()), now);
    case CruisePhase::Next::probe:
      return probe(now);
    case CruisePhase::Next::wait:
      return experiments_.extend(now + cruise_.pause(line_));
  }
}

void MeasuredLaw::after_probe(TimePoint now) {
  switch (probe_.conclude(now, line_, capacity_)) {
    case ProbePhase::Next::cruise:
      return cruise(now);
    case ProbePhase::Next::drain:
      return drain(now);
    case ProbePhase::Next::faster:
      test_.forget_arrivals();
      return probe(now);
    case ProbePhase::Next::again:
      return probe(now);
    case ProbePhase::Next::standstill:
      return may_drain(now) ? drain_standstill(now) : cruise(now);
  }
}

// ---- The phases begin.

void MeasuredLaw::cruise(TimePoint now) {
  const bool after_burst = in(Phase::burst) || in(Phase::rest);
  if (after_burst || probe_.growing() || first_.pending() || !BurstPhase::is_wanted(now, line_))
    return begin(cruise_.begin(now, line_, probe_.growing()), now);
  begin(BurstPhase::begin(line_), now);
  BurstPhase::on_begun(now, experiments_.number(), line_);
}

void MeasuredLaw::probe(TimePoint now) {
  begin(probe_.up(line_), now);
  probe_.on_begun(experiments_.number(), static_cast<double>(pacing_rate()), line_);
}

bool MeasuredLaw::is_lost(TimePoint now) const {
  return in(Phase::cruise) && line_.rate() < promised_ / kLost && line_.is_stretched() && line_.is_calm() &&
         cruise_.lasted(now) > std::max<Duration>(4 * line_.watch.base_rtt(), 500ms);
}

void MeasuredLaw::begin_anew(TimePoint now) {
  promised_ /= kLost;
  start_.begin_again();
  first_ = FirstMeasurement(true);
  probe_.stop_growing();
  line_.tests = LossTests(config_.packet_bytes, now);
  line_.set_rate(train_rate(config_.packet_bytes));
  begin({Phase::train}, now);
}

void MeasuredLaw::stop_competing(TimePoint now) {
  line_.standing.forget_giving_way();
  line_.standing.forget_mean(now);
  line_.sharing.forget();
  line_.tests.losses().clear();
  probe_.stop_growing();
  drain(now);
}

// ---- Answers to a queue.

void MeasuredLaw::ease(TimePoint now) {
  if (line_.watch.doubts() || !cruise_.may_ease(now, line_)) return;
  if (line_.overflows() && line_.standing.came_at_once(line_.watch)) {
    if (!line_.busy_rate()) return;  // soon it will be known
    if (line_.stood_still(now)) return drain_standstill(now);
  }
  cruise_.ease(now, line_);
}

void MeasuredLaw::drain_standstill(TimePoint now) {
  if (!may_drain(now)) return;
  line_.standing.on_standstill();
  drain(now);
}

void MeasuredLaw::give_way(TimePoint now, double rate) {
  line_.standing.on_gave_way(now);
  line_.set_rate(rate);
  probe_.stop_growing();
  drain(now);
}

// ---- What may be sent.

std::uint64_t MeasuredLaw::pacing_rate() const {
  const double rate = line_.bounded(experiments_.gain() * line_.watch.gain() * line_.rate());
  return static_cast<std::uint64_t>(std::max(rate, line_.packets(1)));
}

std::uint64_t MeasuredLaw::window() const {
  if (in(Phase::train)) return static_cast<std::uint64_t>(line_.packets(start_.train_packets()));
  // A train more, but on slow lines not for seconds.
  const double more = std::clamp(line_.rate() * seconds(kMostAhead), line_.packets(4),
                                 line_.packets(StartRamp::kTrainPackets));
  if (competing()) return static_cast<std::uint64_t>(line_.packets(compete_.window_packets()));
  const double way = seconds(line_.watch.longest_base_rtt());
  const double aggregation = seconds(25ms);  // an ACK may come so much later, for many packets
  return static_cast<std::uint64_t>(line_.rate() * ((in(Phase::ramp) ? 4 : 2.5) * way + aggregation) + more);
}

RateView MeasuredLaw::view() const {
  RateView view{.law = RateView::Law::measured,
                .phase = describe(),
                .line_rate = static_cast<std::uint64_t>(line_.rate()),
                .queue = line_.watch.queue(),
                .competes = competing(),
                .policed = policed()};
  if (line_.watch.measured()) view.base_rtt = line_.watch.base_rtt();
  return view;
}

std::optional<PathMemory> MeasuredLaw::memory() const {
  if (!line_.watch.measured() || starting()) return std::nullopt;
  // Too little was sent to learn anything new.
  if (config_.memory && !measured_ && !probe_.learnt_by_piece() && !competing()) return config_.memory;
  return PathMemory{static_cast<std::uint64_t>(line_.rate()), line_.watch.base_rtt()};
}

}  // namespace longhaul::link::udp
