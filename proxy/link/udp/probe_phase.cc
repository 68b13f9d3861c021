// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/probe_phase.h"

#include <algorithm>

#include "proxy/link/udp/start_ramp.h"

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {
constexpr double kLeastStep = 0.01;  // a smaller one shows nothing: no more is allowed
}  // namespace

Plan ProbePhase::up(const LineModel& line) const {
  return {Phase::up, 1 + (growing_ ? growth_ : line.step_size()), line.span()};
}

void ProbePhase::on_begun(std::uint16_t epoch, double pace, const LineModel& line) {
  step_.begin(epoch, line.rate(), pace, seconds(line.watch.queue()));
}

Plan ProbePhase::down(const LineModel& line) const {
  const Duration span = line.span();
  const Duration more = std::min<Duration>(1ms, span / 20);
  return {Phase::down, growing_ ? 1 : 1 - step_.size() - seconds(more) / seconds(span), span};
}

void ProbePhase::on_measured(const RateSample& sample, double rate, const LineModel& line) {
  step_.on_measured(sample, rate, seconds(line.watch.queue()));
}

void ProbePhase::on_piece(const RateSample& sample, const LineModel& line) {
  if (!step_.is_longer_piece(sample, line.packets(StartRamp::kTrainPackets / 2))) return;
  auto piece = sample.beginning;
  piece->interval = std::max<Duration>(piece->interval, 1ms);  // receivers take what comes within it at once
  step_.on_piece(piece->dispatched_bytes, *line.carried(piece));
}

bool ProbePhase::is_answered(TimePoint now, TimePoint ended, const LineModel& line) const {
  return step_.answered() || now > ended + line.span() + 2 * line.watch.queue();
}

ProbePhase::Next ProbePhase::conclude(TimePoint now, LineModel& line, SeenCapacity& capacity) {
  LossTests& tests = line.tests;
  tests.losses().age();
  const double size = step_.size();
  if (step_.best() <= 0 && step_.piece_rate() > 0 && size >= kLeastStep) return conclude_by_piece(line);
  // The application had too little to send, or no more is allowed.
  if (step_.best() <= 0 || size < kLeastStep) return stop(Next::cruise);
  const double rise = step_.rise();
  // There was room if nearly all of it arrived in time, and the queue did not take it.
  const double after = step_.queue_after(seconds(line.watch.queue()));
  const double grown = after - step_.queue_before();
  const bool more = rise > 0.6 * size && grown < 0.4 * size * seconds(line.span());
  // Neither a queue nor losses caused by this sender: then the line can carry more than measured, and the gap
  // was local. On a busy host timers are late; a client that waits for each block leaves gaps.
  if (rise < 0 && (after < seconds(line.kept_queue()) || (line.is_calm() && line.share() > 0.8)) &&
      !tests.is_policed()) {
    // Whether losses are of our making a test tells, and before it is a reason to test.
    if (!tests.is_harmless()) tests.test_soon();
    return stop(Next::cruise);
  }
  // A measurement over a round trip includes the stall.
  if (rise < 0 && line.stood_still(now)) return stop(Next::standstill);

  const bool seen = line.sharing.learn(step_, after, line.watch, line.span(), line.rate());
  if (seen && !more && line.share() < 0.8) capacity.raise(step_.best() / std::max(line.share(), 0.3));
  const double found = line.rate() + (more ? 1 : 0.7) * (step_.best() - line.rate());
  if (tests.is_policed() && found < line.rate() && !line.overflows())
    line.lower_for_losses(found);
  else
    line.set_rate(found);
  line.set_rate(line.sharing.draw_even(now, line.rate(), more));
  // Once may be chance, or capacity that other traffic left for a moment.
  growth_ = std::min(more ? (growing_ ? 2 : 1) * size : 0, 1.0);
  growing_ = more;
  if (more) return Next::again;
  if (!line.overflows() || size <= 0.2 || line.share() <= 0.8) return Next::cruise;
  tests.losses().clear();
  return Next::drain;
}

ProbePhase::Next ProbePhase::conclude_by_piece(LineModel& line) {
  const double size = step_.size();
  // A pause is made up for by a short burst, which says nothing of the rate meant.
  const double rise = std::min(step_.piece_rate(), step_.rate()) / step_.base() - 1;
  // A policer lets short bursts pass at any rate, and a client that waits for answers gains nothing from even
  // shorter ones.
  const bool is_long = static_cast<double>(step_.piece_bytes()) > step_.base() * seconds(2ms);
  const bool harmless = line.tests.is_harmless();
  if (!harmless && !line.tests.is_policed()) line.tests.test_soon();
  if (rise <= 0.6 * size || !line.is_calm() || !is_long || !harmless) return stop(Next::cruise);
  grow(std::min(2 * size, 1.0));
  line.set_rate(line.rate() * (1 + rise));
  learnt_by_piece_ = true;
  return Next::faster;
}

}  // namespace longhaul::link::udp
