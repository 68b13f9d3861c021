// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/paced_law.h"

#include <algorithm>

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {
constexpr double kLossOnTrial = 0.02;  // loss that justifies a test whether it depends on the rate
constexpr Duration kFirstTrial = 6s;
constexpr Duration kLongestInterval = 60s;
constexpr Duration kLongestTrial = 2s;
}  // namespace

PacedLaw::PacedLaw(const PacedConfig& config, TimePoint now)
    : config_(config),
      watch_(config.initial_rtt),
      losses_(config.packet_bytes),
      next_trial_(now + kFirstTrial),
      aged_at_(now) {
  config_.rate = std::max<std::uint64_t>(config_.rate, 1);
  levels_.fill(LossByRate::Level::normal);
}

Duration PacedLaw::span() const { return std::max<Duration>(watch_.base_rtt(), 25ms); }

void PacedLaw::on_sample(const RateSample& sample) {
  if (sample.rtt) max_rtt_.add(sample.now, *sample.rtt);
  if (guard_) {
    guard_->on_sample(sample);
    const bool fits = guard_->settled() && guard_->line_rate() >= 0.99 * told() && !guard_->policed() &&
                      guard_->watch().queue() < 5ms + span() / 16;
    if (!fits) {
      fits_since_.reset();
    } else if (!fits_since_) {
      fits_since_ = sample.now;
    } else if (sample.now - *fits_since_ > 10 * span()) {
      end_guard(sample.now);
    }
    return;
  }
  const bool doubted = watch_.doubts();
  watch_.on_sample(sample, {.rate = told(), .capacity = told(), .loss = losses_.total_loss(), .alone = true});
  if (watch_.doubts() && !doubted) losses_before_doubt_ = losses_;
  if (const auto slower = watch_.slower_rate()) {
    losses_ = *losses_before_doubt_;  // later ones were caused by sending too much
    return begin_guard(sample.now, std::min(*slower, told()));
  }
  for (const EpochTally& tally : sample.epochs) {
    const auto level = levels_[tally.epoch % levels_.size()];
    losses_.add(level, level == LossByRate::Level::low ? trial_gain_ * told() : told(), tally);
  }
  if (sample.delivery)
    least_arrived_ =
        static_cast<double>(sample.delivery->delivered_bytes) / seconds(sample.delivery->interval);
  watch_queue(sample);
  if (!guard_) watch_loss(sample.now);
}

// A queue that keeps growing, or persists: the line is slower than configured, or carries other traffic.
void PacedLaw::watch_queue(const RateSample& sample) {
  if (watch_.became_longer()) queue_since_.reset();
  if (watch_.doubts()) return;
  const Duration queue = watch_.queue();
  const bool stands = queue >= 4ms + watch_.base_rtt() / 32;
  busy_.on_sample(sample, stands);
  if (!stands) {
    queue_since_.reset();
    return;
  }
  if (!queue_since_) queue_since_ = sample.now;
  if (!sample.delivery || sample.delivery->application_limited) return;
  if (!busy_.value()) return;
  const double passes = std::min(*busy_.value() / (1 - std::min(losses_.total_loss(), 0.6)), told());
  const Duration stood = sample.now - *queue_since_;
  // A host that was busy for a moment delivers all arrivals of that time at once: a queue in one sample only.
  // A line that stalled needs time to catch up.
  const bool much = queue > 15ms + watch_.base_rtt() / 8 && stood > watch_.lag();
  const bool floods = much && (passes < 0.95 * told() || busy_.jump() > queue / 2);
  const bool stays = stood > std::max<Duration>(10 * span(), 1s);
  if (floods || stays) begin_guard(sample.now, passes);
}

void PacedLaw::watch_loss(TimePoint now) {
  if (now - aged_at_ > std::max<Duration>(2 * span(), 1s)) {
    losses_.age(0.8);
    aged_at_ = now;
  }
  switch (trial_) {
    case Trial::none: {
      const double loss = losses_.total_loss();
      const bool due = now >= next_trial_ || loss > tried_loss_ + 0.03;
      if (!due || loss < kLossOnTrial || !losses_.enough(LossByRate::Level::normal)) return;
      trial_ = Trial::slow;
      trial_gain_ = LossByRate::trial_gain(loss);
      trial_until_ = now + trial_time();
      levels_[++epoch_ % levels_.size()] = LossByRate::Level::low;
      break;
    }
    case Trial::slow:
      if (now < trial_until_) return;
      trial_ = Trial::waiting;
      trial_until_ = now + span() * 5 / 4;
      levels_[++epoch_ % levels_.size()] = LossByRate::Level::normal;
      break;
    case Trial::waiting:
      if (now < trial_until_) return;
      trial_ = Trial::none;
      if (losses_.depends_on_rate()) {
        // The current arrivals are the line's capacity, unless there was too little to send: the lower rate
        // was carried.
        begin_guard(now, std::clamp(least_arrived_ / (1 - std::min(losses_.random_loss(), 0.6)),
                                    trial_gain_ * told(), told()));
        return;
      }
      tried_loss_ = losses_.total_loss();
      trial_interval_ = std::min<Duration>(
          3 * std::max<Duration>(trial_interval_, std::max<Duration>(500ms, 4 * span())), kLongestInterval);
      next_trial_ = now + trial_interval_;
  }
}

// A round trip. Where most is lost, so few packets may be sent in it that they decide nothing: twice as many
// as needed, because older ones count less.
Duration PacedLaw::trial_time() const {
  if (trial_gain_ > 0.5) return span();
  const double enough = 2 * losses_.seconds_for_enough(trial_gain_ * told());
  return std::max(span(), std::min<Duration>(LineModel::times(1s, enough), kLongestTrial));
}

void PacedLaw::begin_guard(TimePoint now, double rate) {
  const MeasuredConfig config{.initial_rtt = watch_.base_rtt(),
                              .packet_bytes = config_.packet_bytes,
                              .max_rate = config_.rate,
                              .seed = config_.seed};
  guard_.emplace(config, now, watch_, losses_, rate, static_cast<std::uint16_t>(epoch_ + 1));
  fits_since_.reset();
}

void PacedLaw::end_guard(TimePoint now) {
  watch_ = guard_->watch();
  epoch_ = static_cast<std::uint16_t>(guard_->epoch() + 1);
  levels_.fill(LossByRate::Level::normal);
  guard_.reset();
  losses_.clear();
  queue_since_.reset();
  busy_ = {};
  trial_ = Trial::none;
  trial_interval_ = Duration{0};
  next_trial_ = now + kFirstTrial;
  tried_loss_ = 0.12;
}

void PacedLaw::on_send(TimePoint now, std::uint64_t bytes, std::uint64_t in_flight_bytes) {
  if (guard_) guard_->on_send(now, bytes, in_flight_bytes);
}

std::uint64_t PacedLaw::pacing_rate() const {
  if (guard_) return std::min(guard_->pacing_rate(), config_.rate);
  const double gain = watch_.gain() * (trial_ == Trial::slow ? trial_gain_ : 1);
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(gain * told()), 1);
}

RateView PacedLaw::view() const {
  if (guard_) {
    RateView view = guard_->view();
    view.law = RateView::Law::guarded;
    return view;
  }
  RateView view{.law = RateView::Law::told,
                .phase = trial_ == Trial::none ? "configured" : "test",
                .line_rate = config_.rate,
                .queue = watch_.queue()};
  if (watch_.measured()) view.base_rtt = watch_.base_rtt();
  return view;
}

// Twice the bytes in flight at the rate, so that lost ACKs do not stop the sender.
std::uint64_t PacedLaw::window() const {
  if (guard_) return guard_->window();
  const Duration way = max_rtt_.value().value_or(config_.initial_rtt) + 50ms;
  return static_cast<std::uint64_t>(2 * seconds(way) * told()) + 16 * config_.packet_bytes;
}

}  // namespace longhaul::link::udp
