// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/phase_order.h"

#include <algorithm>

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {
constexpr Duration kMostAhead = 1s;  // of the line's time, what may be sent beyond the round trips
}  // namespace

PhaseOrder::PhaseOrder(const Terms& terms, LineModel& line)
    : terms_(terms),
      line_(line),
      start_(terms.packet_bytes, terms.max_rate),
      cruise_(terms.seed),
      follow_(terms.packet_bytes),
      compete_(terms.packet_bytes) {}

void PhaseOrder::begin_unknown(TimePoint now) { begin({Phase::train}, now); }

void PhaseOrder::begin_remembered(TimePoint now) {
  lost_.promise(line_.rate());
  begin(cruise_.begin(now, 2 * line_.span()), now);
}

void PhaseOrder::begin_after(double rate, std::uint16_t first_epoch, TimePoint now) {
  line_.set_rate(rate);
  const auto most = static_cast<double>(terms_.max_rate);
  capacity_.set(most);
  experiments_ = Experiments(first_epoch);
  first_ = FirstMeasurement(false);
  lost_.promise(std::max(rate, most));
  drain(now);
}

// ---- The present phase.

LineModel::Use PhaseOrder::use() const {
  LineModel::Use use{.competes = reacting()};
  if (knows_rate()) use.capacity = capacity_.value();
  return use;
}

std::uint64_t PhaseOrder::pacing_rate() const {
  const double rate = line_.bounded(experiments_.gain() * line_.watch.gain() * line_.rate());
  return static_cast<std::uint64_t>(std::max(rate, line_.packets(1)));
}

std::uint64_t PhaseOrder::window() const {
  if (in(Phase::train)) return static_cast<std::uint64_t>(line_.packets(start_.train_packets()));
  // A train more, but on slow lines not for seconds.
  const double more = std::clamp(line_.rate() * seconds(kMostAhead), line_.packets(4),
                                 line_.packets(StartRamp::kTrainPackets));
  if (competing()) return static_cast<std::uint64_t>(line_.packets(compete_.window_packets()));
  if (following()) return static_cast<std::uint64_t>(follow_.window(line_));
  const double way = seconds(line_.watch.longest_base_rtt());
  const double aggregation = seconds(25ms);  // an ACK may come so much later, for many packets
  return static_cast<std::uint64_t>(line_.rate() * ((in(Phase::ramp) ? 4 : 2.5) * way + aggregation) + more);
}

// ---- What a sample says.

void PhaseOrder::note(const RateSample& sample) {
  if (starting()) start_.note(sample);
  // Losses while a queue overflows, or did while the line's rate was measured, say nothing about the rate
  // found.
  if (line_.overflows()) return;
  for (const EpochTally& tally : sample.epochs) {
    const auto* past = experiments_.find(tally.epoch);
    if (past && measures_loss(past->phase))
      line_.tests.losses().add(level_of(past->phase), past->rate, tally);
  }
}

void PhaseOrder::on_start(const RateSample& sample) {
  using Next = StartRamp::Next;
  const StartRamp::Step found =
      in(Phase::train) ? start_.on_train(sample, line_) : start_.on_ramp(sample, line_);
  if (found.capacity) capacity_.set(*found.capacity);
  if (found.next == Next::stay) return;
  lost_.promise(in(Phase::ramp) && found.next == Next::ramp ? line_.rate() : found.rate);
  line_.set_rate(found.rate);
  if (found.next == Next::search) probe_.grow(0.25);
  if (found.next == Next::ramp) return begin({Phase::ramp}, sample.now);
  if (found.next == Next::cruise) return cruise(sample.now);
  drain(sample.now);
}

void PhaseOrder::on_following(const RateSample& sample, bool new_round) {
  follow_.on_sample(sample, line_, new_round);
  if (follow_.arrivals() > 0) capacity_.on_carried(follow_.arrivals(), sample.now);
  switch (follow_.next(sample.now, line_)) {
    case FollowPhase::Next::stay:
      return;
    case FollowPhase::Next::compete:
      return begin(compete_.begin(sample.now, line_, capacity_.value()), sample.now);
    case FollowPhase::Next::stop:
      if (follow_.arrivals() > 0) line_.set_rate(follow_.arrivals());
      stop_reacting(sample.now);
      return line_.standing.give_way_no_more(sample.now);
  }
}

void PhaseOrder::on_competing(const RateSample& sample, bool new_round) {
  compete_.on_sample(sample, line_, capacity_.value(), new_round);
  for (const Phase phase : {Phase::compete, Phase::look}) {  // a look may be over as it begins
    if (!in(phase)) continue;
    const auto plan = compete_.next(sample.now, experiments_, line_);
    if (!plan) continue;
    if (plan->phase == Phase::drain) return stop_reacting(sample.now);
    begin(*plan, sample.now);
  }
}

bool PhaseOrder::on_measured(const RateSample& sample, double rate) {
  if (in(Phase::cruise))
    test_.on_arrivals(static_cast<double>(sample.delivery->delivered_bytes) /
                      seconds(sample.delivery->interval));
  probe_.on_measured(sample, rate, line_);
  measured_ = rate > 0;
  capacity_.on_carried(rate, sample.now);
  lost_.promise(rate);
  return !first_.pending() || first_.counts(sample, experiments_.find(sample.sent_epoch));
}

void PhaseOrder::on_longer_path(TimePoint now) {
  if (starting()) return;
  if (const auto slower = line_.undo_doubt()) capacity_.set(*slower);
  if (reacting()) return stop_reacting(now);
  line_.standing.forget_giving_way();
  line_.standing.forget_mean(now);
  cruise(now);
}

// ---- What follows.

void PhaseOrder::on_send(TimePoint now, std::uint64_t bytes) {
  if (in(Phase::burst) && line_.sharing.on_send(now, bytes)) begin(BurstPhase::rest(line_), now);
}

void PhaseOrder::step(TimePoint now, std::uint64_t in_flight_bytes) {
  if (line_.watch.doubts_rate() && !in(Phase::drain)) return wait_for_answer(now);
  if (in(Phase::cruise)) {
    if (lost_.is_lost(cruise_.lasted(now), line_)) return begin_anew(now);
    experiments_.set_gain(CruisePhase::gain(line_));
  }
  const bool drained = in(Phase::drain) && DrainPhase::is_over(line_, in_flight_bytes);
  if (now >= experiments_.ends() || drained) next_phase(now);
}

// What is sent now tells whether the path has become longer and slower, and nothing else.
void PhaseOrder::wait_for_answer(TimePoint now) {
  if (!in(Phase::cruise)) begin(cruise_.begin(now, line_, probe_.growing()), now);
  experiments_.set_gain(1);
}

void PhaseOrder::next_phase(TimePoint now) {
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
    case Phase::follow:
    case Phase::compete:
    case Phase::look:
      return;
  }
}

void PhaseOrder::after_cruise(TimePoint now) {
  switch (cruise_.next(now, line_)) {
    case CruisePhase::Next::test:
      return begin(TestPhase::begin(line_, probe_.in_pieces()), now);
    case CruisePhase::Next::probe:
      return probe(now);
    case CruisePhase::Next::wait:
      return experiments_.extend(now + cruise_.pause(line_));
  }
}

void PhaseOrder::after_probe(TimePoint now) {
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
      return may_drain(now) ? carry_out({QueueAnswer::Kind::standstill}, now) : cruise(now);
  }
}

void PhaseOrder::cruise(TimePoint now) {
  const bool after_burst = in(Phase::burst) || in(Phase::rest);
  if (after_burst || probe_.growing() || first_.pending() || !BurstPhase::is_wanted(now, line_))
    return begin(cruise_.begin(now, line_, probe_.growing()), now);
  begin(BurstPhase::begin(line_), now);
  BurstPhase::on_begun(now, experiments_.number(), line_);
}

void PhaseOrder::probe(TimePoint now) {
  begin(probe_.up(line_), now);
  probe_.on_begun(experiments_.number(), static_cast<double>(pacing_rate()), line_);
}

void PhaseOrder::begin_anew(TimePoint now) {
  lost_.on_begun_anew();
  start_.begin_again();
  first_ = FirstMeasurement(true);
  probe_.stop_growing();
  line_.tests = LossTests(terms_.packet_bytes, now);
  line_.set_rate(StartRamp::train_rate(terms_.packet_bytes));
  begin({Phase::train}, now);
}

void PhaseOrder::stop_reacting(TimePoint now) {
  line_.standing.forget_giving_way();
  line_.standing.forget_mean(now);
  line_.sharing.forget();
  if (competing()) line_.tests.losses().clear();
  probe_.stop_growing();
  drain(now);
}

// ---- Answers to a queue.

void PhaseOrder::ease(TimePoint now) {
  if (line_.watch.doubts() || !cruise_.may_ease(now, line_)) return;
  if (const auto answer = QueueAnswer::to_excess(now, line_)) carry_out(*answer, now);
}

void PhaseOrder::carry_out(const QueueAnswer& answer, TimePoint now) {
  switch (answer.kind) {
    case QueueAnswer::Kind::standstill:
      if (!may_drain(now)) return;
      line_.standing.on_standstill();
      return drain(now);
    case QueueAnswer::Kind::give_way:
      line_.standing.on_gave_way(now);
      line_.set_rate(answer.rate);
      probe_.stop_growing();
      return drain(now);
    case QueueAnswer::Kind::follow:
      return begin(follow_.begin(now), now);
    case QueueAnswer::Kind::ease:
      return cruise_.ease(now, line_);
  }
}

}  // namespace longhaul::link::udp
