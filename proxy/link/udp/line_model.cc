// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/line_model.h"

#include <algorithm>

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {
constexpr Duration kShortestPhase = 40ms;  // shorter ones measure timers
constexpr double kNearlyAlone = 0.8;       // share of the line
constexpr double kFewestInPhase = 4;       // packets: fewer do not show a phase's rate
}  // namespace

LineModel::LineModel(const LineTerms& terms, TimePoint now)
    : terms_(terms),
      rate_(terms.rate),
      watch(terms.initial_rtt),
      tests(terms.packet_bytes, now),
      sharing(terms.packet_bytes, static_cast<double>(terms.max_rate)) {}

void LineModel::on_sample(const RateSample& sample, const Use& use) {
  LineWatch::Carries line;
  // With a small part of the line, slowing down shows nothing of a queue.
  const bool is_small = use.competes && use.capacity && *use.capacity > 4 * rate_;
  if (use.capacity && !is_small)
    line = {.rate = rate_,
            .capacity = std::clamp(*use.capacity, rate_, 4 * rate_),
            .loss = tests.harmless_loss(),
            .alone = !use.competes && share() > kNearlyAlone};
  const bool doubted = watch.doubts();
  watch.on_sample(sample, line);
  sharing.on_sample(sample);
  standing.on_sample(sample, overflows());
  if (watch.doubts() && !doubted) before_doubt_ = {rate_, tests.losses()};
}

std::optional<double> LineModel::undo_doubt() {
  const auto slower = watch.slower_rate();
  if (slower) {
    set_rate(*slower);
    if (before_doubt_)
      tests.losses() = before_doubt_->losses;  // later ones were lost because too much was sent
  } else {
    set_rate(before_doubt_ ? std::max(rate_, before_doubt_->rate) : rate_);
  }
  return slower;
}

double LineModel::bounded(double rate) const {
  return terms_.max_rate > 0 ? std::min(rate, static_cast<double>(terms_.max_rate)) : rate;
}

void LineModel::set_rate(double rate) {
  rate_ = std::max(bounded(rate), packets(2));  // two packets a second still measure the line
  tests.on_rate(rate_);
}

void LineModel::lower_for_losses(double rate) {
  set_rate(std::max(rate, std::min(rate_, tests.least_rate())));
}

Duration LineModel::span() const {
  const Duration few = times(1s, packets(kFewestInPhase) / rate_);
  return std::max({watch.base_rtt(), kShortestPhase, few});
}

bool LineModel::is_stretched() const { return span() > std::max(watch.base_rtt(), kShortestPhase); }

// More is not needed: what waits is carried much faster than it comes.
Duration LineModel::kept_queue() const { return kQueue + watch.usual_pause() * 3 / 4; }

// Each pause makes a queue of its length, which belongs to nobody else.
Duration LineModel::queue_target() const { return 4ms + watch.base_rtt() / 7 + watch.usual_pause(); }

Duration LineModel::queue_limit() const { return watch.base_rtt() / 2 + 15ms + watch.usual_pause(); }

bool LineModel::is_calm() const { return watch.queue() < kept_queue() + 2ms + watch.base_rtt() / 32; }

std::optional<double> LineModel::carried(const std::optional<DeliveryRate>& delivery) const {
  if (!delivery) return std::nullopt;
  const double time = seconds(delivery->interval);
  const double by_sending = static_cast<double>(delivery->dispatched_bytes) / time;
  const double by_arrival = static_cast<double>(delivery->delivered_bytes) / time;
  return std::min(by_sending, by_arrival / (1 - std::min(tests.harmless_loss(), 0.6)));
}

bool LineModel::stood_still(TimePoint now) {
  const auto busy = busy_rate();
  if (!busy || *busy <= 0.97 * rate_ || !standing.came_at_once(watch)) return false;
  return standing.believes_standstills(now, span());
}

}  // namespace longhaul::link::udp
