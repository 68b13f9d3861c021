// SPDX-License-Identifier: Apache-2.0
// How MeasuredLaw estimates its share of the line, and converges with other links to even shares. The
// reaction of the queue to a higher rate reveals other traffic; a burst measures the capacity of the line,
// and then the share is known well enough to move towards half.
#include <algorithm>
#include <cmath>

#include "proxy/link/udp/measured_law.h"

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {
constexpr double kShared = 0.9;        // of the line: a sender with more may be alone
constexpr double kBurstPackets = 32;   // three or four acknowledgements
constexpr Duration kShortBurst = 6ms;  // receivers take what comes within one or two at once
constexpr double kFewestPackets = 6;
constexpr double kManyTimes = 20;  // what delays differ by from one packet to the next
constexpr double kBurstGain = 4;   // above the line's rate for anybody with a quarter of it
}  // namespace

double MeasuredLaw::share() const {
  const auto capacity = probe_.capacity();
  return capacity ? std::min(line_ / *capacity, 1.0) : share_by_queue_;
}

// The step of `up` and `down`: enough to be visible as a queue, and within the queue's capacity. If only the
// queue indicates the share, the step is larger for a smaller share.
double MeasuredLaw::step_size() const {
  const double alone = std::clamp(seconds(3ms + watch_.base_rtt() / 25) / seconds(span()), 0.03, 0.125);
  return probe_.capacity() ? alone : std::max(alone, std::min(0.5 * (0.95 - share_by_queue_), 0.25));
}

// `size`: the excess of the latest `up`, as a part of the line's rate. `after`: seconds of queue when it was
// answered. `more`: there was room.
void MeasuredLaw::learn_share(double size, double after, bool more) {
  // The expected result if the line were ours alone.
  const double whole = size * (seconds(span()) - seconds(watch_.lag()));
  // On a slow line that is less than a packet takes, and single late packets would be taken for a queue or
  // its absence.
  if (up_queue_at_answer_ && whole > std::max(seconds(2ms), packets(1) / line_)) {
    // The queue grows by our excess, as a part of everything that the line carries: so that is our share of
    // it.
    const double found = (after - *up_queue_at_answer_) / whole;
    // If the queue was empty some of it is needed to fill the line first: then our share is at least this.
    const bool from_full = *up_queue_at_answer_ > seconds(kQueue) / 2;
    if (found < -1 || found > 2) {
      // Not our excess: other traffic, or a stall.
    } else if (from_full || found > share_by_queue_) {
      share_by_queue_ += 0.15 * (std::clamp(found, 0.0, 1.0) - share_by_queue_);
    } else {
      share_by_queue_ += 0.03 * (1 - share_by_queue_);
    }
    if (!more && share() < 0.8) capacity_ = std::max(capacity_, up_best_ / std::max(share(), 0.3));
  }
}

// All links that share a line move to the same share; the queue takes back any excess from
// all.
void MeasuredLaw::draw_even(TimePoint now, bool more) {
  // Our own share exceeds the measured capacity: it was wrong, or is outdated.
  if (probe_.is_old(now) || line_ > 1.1 * probe_.capacity().value_or(line_)) probe_.forget();
  const double ours = share();
  const bool known = probe_.capacity().has_value();
  // If there is room, no other link needs our share, or it has not found it yet.
  const bool too_much = ours > 0.5 && !(known && more);
  if (ours < 0.5 || (too_much && ours < (known ? kShared : 0.8)))
    set_line(line_ * (1 + 0.2 * std::clamp(0.5 - ours, -0.25, 0.25)));
  // The estimate of a burst is better than that of the queue.
  if (known) share_by_queue_ = std::max(share_by_queue_, ours);
}

// A link that seems to be alone need not measure. With jitter, a burst must be long compared to it; and on a
// slow line it would be a queue that looks like other traffic.
bool MeasuredLaw::wants_burst(TimePoint now) const {
  const double time = burst_bytes() / line_;
  return !growing_ && !starting_ && std::min(share_by_queue_, share()) < 0.95 && !probe_.in_vain(now) &&
         burst_rate() >= CapacityProbe::kLeast * line_ && time > kManyTimes * seconds(watch_.variation()) &&
         0.375 * time <
             seconds(queue_target());  // of a link with half of the line that sends four times as fast
}

double MeasuredLaw::burst_rate() const {
  const double most = config_.max_rate > 0 ? static_cast<double>(config_.max_rate) : 1e18;
  return std::min(kBurstGain * line_, most);
}

double MeasuredLaw::burst_bytes() const {
  return std::max({line_ * seconds(kShortBurst),
                   std::min(packets(kBurstPackets), line_ * seconds(8ms + watch_.base_rtt() / 8)),
                   packets(kFewestPackets)});
}

void MeasuredLaw::begin_burst(TimePoint now) {
  enter(Phase::burst, burst_rate() / line_, std::max(span(), times(2s, burst_bytes() / burst_rate())), now);
  probe_.begin(now, {.epoch = epoch_, .usual_rate = line_, .rate = burst_rate(), .bytes = burst_bytes()});
}

// The queue of the burst drains.
void MeasuredLaw::rest_after_burst(TimePoint now) {
  enter(Phase::rest, 0.5, times(1s, 2 * burst_bytes() / line_), now);
}

}  // namespace longhaul::link::udp
