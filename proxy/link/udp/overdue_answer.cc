// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/overdue_answer.h"

#include <algorithm>

namespace longhaul::link::udp {
namespace {

// A host that stalls for a moment is not a silent path.
constexpr Duration kPause = std::chrono::milliseconds(25);

}  // namespace

// Excludes packets that search for the path's MTU: a working path may well drop those.
void OverdueAnswer::note(bool answered, TimePoint now) {
  if (flight_.bytes_against_window() == 0)
    unanswered_since_.reset();
  else if (answered || !unanswered_since_)
    unanswered_since_ = now;
}

Duration OverdueAnswer::late_after() const {
  return flight_.sent().rtt().probe_timeout(SentPackets::kMaxAckDelay);
}

Duration OverdueAnswer::silent_after() const { return 2 * late_after() + kPause; }

bool OverdueAnswer::is_doubtful(TimePoint now) const {
  if (!watched_ || !waits(SentPackets::kMaxAckDelay, now)) return false;
  const auto from = doubtful_from();
  return from && now >= *from;
}

std::optional<TimePoint> OverdueAnswer::doubtful_from() const {
  const auto oldest = flight_.sent().oldest_in_flight();
  if (!oldest || !unanswered_since_) return std::nullopt;
  return std::max(*oldest + late_after(), *unanswered_since_ + SentPackets::kMaxAckDelay);
}

bool OverdueAnswer::waits(Duration time, TimePoint now) const {
  return is_up() && unanswered_since_ && now - *unanswered_since_ >= time;
}

std::optional<TimePoint> OverdueAnswer::next_timeout(TimePoint last) const {
  if (!watched_ || !is_up() || !unanswered_since_) return std::nullopt;
  const TimePoint late = *unanswered_since_ + late_after();
  const TimePoint silent = *unanswered_since_ + silent_after();
  const TimePoint quiet = *unanswered_since_ + SentPackets::kMaxAckDelay;
  std::optional<TimePoint> next;
  if (last < silent) next = last < late ? late : silent;
  // The oldest packet is only searched for during silence.
  std::optional<TimePoint> sooner;
  if (last < quiet) {
    sooner = quiet;
  } else if (last < late) {
    if (const auto doubtful = doubtful_from(); doubtful && last < *doubtful) sooner = doubtful;
  }
  return sooner && (!next || *sooner < *next) ? sooner : next;
}

}  // namespace longhaul::link::udp
