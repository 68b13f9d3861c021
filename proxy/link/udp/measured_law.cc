// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/measured_law.h"

#include <utility>

namespace longhaul::link::udp {

namespace {

bool knows_rate(const MeasuredConfig& config) { return config.memory && config.memory->rate > 0; }

LineTerms terms_of(const MeasuredConfig& config) {
  // If a remembered line is slower now, its queue shows it within a round trip.
  const double rate = knows_rate(config)
                          ? 0.95 * config.memory->trust * static_cast<double>(config.memory->rate)
                          : StartRamp::train_rate(config.packet_bytes);
  return {.packet_bytes = config.packet_bytes,
          .max_rate = config.max_rate,
          .initial_rtt = config.memory ? config.memory->min_rtt : config.initial_rtt,
          .rate = rate};
}

PhaseOrder::Terms phase_terms(const MeasuredConfig& config) {
  return {config.packet_bytes, config.max_rate, config.seed};
}

}  // namespace

MeasuredLaw::MeasuredLaw(const MeasuredConfig& config, TimePoint now)
    : remembered_(config.memory), line_(terms_of(config), now), phases_(phase_terms(config), line_) {
  knows_rate(config) ? phases_.begin_remembered(now) : phases_.begin_unknown(now);
}

MeasuredLaw::MeasuredLaw(const MeasuredConfig& config, TimePoint now, const LineWatch& watch,
                         const LossByRate& losses, double rate, std::uint16_t first_epoch)
    : remembered_(config.memory), line_(terms_of(config), now), phases_(phase_terms(config), line_) {
  line_.watch = watch;
  line_.tests.adopt(losses);
  phases_.begin_after(rate, first_epoch, now);
}

void MeasuredLaw::on_sample(const RateSample& sample) {
  const bool doubted = line_.watch.doubts();
  line_.on_sample(sample, phases_.use());
  phases_.note(sample);
  if (line_.watch.became_longer()) return phases_.on_longer_path(sample.now);
  if (doubted && !line_.watch.doubts() && !phases_.starting() && !reacting())
    if (const auto answer = QueueAnswer::to_ended_doubt(sample.now, line_))
      phases_.carry_out(*answer, sample.now);
  if (phases_.starting()) {
    phases_.on_start(sample);
  } else if (phases_.following()) {
    phases_.on_following(sample, is_new_round(sample));
  } else if (competing()) {
    phases_.on_competing(sample, is_new_round(sample));
  } else {
    on_settled(sample);
  }
  step(sample.now, sample.in_flight_bytes);
}

void MeasuredLaw::on_settled(const RateSample& sample) {
  const auto rate = line_.carried(sample.delivery);
  if (rate && !sample.delivery->application_limited) return on_measured(sample, *rate);
  phases_.on_piece(sample);
  // The state of the queue at the last full packet is no news.
  if (phases_.in(Phase::cruise) && sample.forward_delay && LineWatch::is_full(sample))
    phases_.ease(sample.now);
}

void MeasuredLaw::on_measured(const RateSample& sample, double rate) {
  const TimePoint now = sample.now;
  const bool new_round = is_new_round(sample);
  if (!phases_.on_measured(sample, rate)) return;
  if (phases_.knows_rate() && phases_.may_drain(now))
    if (const auto answer = QueueAnswer::to_measured(now, line_)) return phases_.carry_out(*answer, now);
  if (!new_round || !phases_.in(Phase::cruise)) return;
  if (policed() && rate < line_.rate())
    return line_.lower_for_losses(line_.rate() + 0.5 * (rate - line_.rate()));
  phases_.ease(now);
}

bool MeasuredLaw::is_new_round(const RateSample& sample) {
  return sample.round != std::exchange(last_round_, sample.round);
}

void MeasuredLaw::on_send(TimePoint now, std::uint64_t bytes, std::uint64_t in_flight_bytes) {
  phases_.on_send(now, bytes);
  step(now, in_flight_bytes);
}

void MeasuredLaw::step(TimePoint now, std::uint64_t in_flight_bytes) {
  if (phases_.starting() || reacting()) return;
  line_.standing.watch_mean(now, line_.watch.queue(), line_.span());
  if (!phases_.in(Phase::drain))
    if (const auto answer = QueueAnswer::to_standing(now, line_)) phases_.carry_out(*answer, now);
  if (!reacting()) phases_.step(now, in_flight_bytes);
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
  if (!line_.watch.measured() || phases_.starting()) return std::nullopt;
  // Too little was sent to learn anything new.
  if (remembered_ && !phases_.has_learnt()) return remembered_;
  return PathMemory{static_cast<std::uint64_t>(line_.rate()), line_.watch.base_rtt()};
}

}  // namespace longhaul::link::udp
