// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/line_share.h"

#include <algorithm>

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {
constexpr Duration kLeftInQueue = 1ms;  // by the law, so that the line is never idle
constexpr double kShared = 0.9;         // of the line: a sender with more may be alone
constexpr double kBurstPackets = 32;    // three or four acknowledgements
constexpr Duration kShortBurst = 6ms;   // receivers take what comes within one or two at once
constexpr double kFewestPackets = 6;
constexpr double kManyTimes = 20;  // what delays differ by from one packet to the next
constexpr double kBurstGain = 4;   // above the line's rate for anybody with a quarter of it
}  // namespace

double LineShare::of(double line) const {
  const auto capacity = probe_.capacity();
  return capacity ? std::min(line / *capacity, 1.0) : by_queue_;
}

double LineShare::step_size(const LineWatch& watch, Duration span) const {
  const double alone = std::clamp(seconds(3ms + watch.base_rtt() / 25) / seconds(span), 0.03, 0.125);
  return probe_.capacity() ? alone : std::max(alone, std::min(0.5 * (0.95 - by_queue_), 0.25));
}

bool LineShare::learn(const FasterStep& step, double after, const LineWatch& watch, Duration span,
                      double line) {
  // What would be seen if the line were ours alone.
  const double whole = step.size() * (seconds(span) - seconds(watch.lag()));
  const auto at_answer = step.queue_at_answer();
  // On a slow line that is less than a packet takes, and single late packets would be taken for a queue or
  // its absence.
  if (!at_answer || whole <= std::max(seconds(2ms), packets(1) / line)) return false;
  // The queue takes what we send too much, as a part of all that the line carries: so that is our part of
  // it.
  const double found = (after - *at_answer) / whole;
  if (found < -1 || found > 2) return true;  // not what we sent too much: others, or a line that stood still
  // From an empty queue some of it is needed to fill the line first: then our part is at least this.
  const bool from_full = *at_answer > seconds(kLeftInQueue) / 2;
  by_queue_ += from_full || found > by_queue_ ? 0.15 * (std::clamp(found, 0.0, 1.0) - by_queue_)
                                              : 0.03 * (1 - by_queue_);
  return true;
}

double LineShare::draw_even(TimePoint now, double line, bool more) {
  // Our own share exceeds the measured capacity: it was wrong, or is outdated.
  if (probe_.is_old(now) || line > 1.1 * probe_.capacity().value_or(line)) probe_.forget();
  const double ours = of(line);
  const bool known = probe_.capacity().has_value();
  // If there is room, no other link needs our share, or it has not found it yet.
  const bool too_much = ours > 0.5 && !(known && more);
  // The estimate of a burst is better than that of the queue.
  if (ours < 0.5 || (too_much && ours < (known ? kShared : 0.8)))
    line *= 1 + 0.2 * std::clamp(0.5 - ours, -0.25, 0.25);
  if (known) by_queue_ = std::max(by_queue_, ours);
  return line;
}

bool LineShare::wants_burst(TimePoint now, double line, const LineWatch& watch, Duration longest) const {
  const double time = burst_bytes(line, watch) / line;
  // A link with half of the line that sends four times as fast adds 0.375 of the time to the queue.
  return std::min(by_queue_, of(line)) < 0.95 && !probe_.in_vain(now) &&
         burst_rate(line) >= CapacityProbe::kLeast * line && time > kManyTimes * seconds(watch.variation()) &&
         0.375 * time < seconds(longest);
}

double LineShare::burst_rate(double line) const { return std::min(kBurstGain * line, most_); }

double LineShare::burst_bytes(double line, const LineWatch& watch) const {
  return std::max({line * seconds(kShortBurst),
                   std::min(packets(kBurstPackets), line * seconds(8ms + watch.base_rtt() / 8)),
                   packets(kFewestPackets)});
}

void LineShare::begin_burst(TimePoint now, std::uint16_t epoch, double line, const LineWatch& watch) {
  probe_.begin(
      now, {.epoch = epoch, .usual_rate = line, .rate = burst_rate(line), .bytes = burst_bytes(line, watch)});
}

}  // namespace longhaul::link::udp
