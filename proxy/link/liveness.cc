// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/liveness.h"

namespace longhaul::link {

using namespace std::chrono_literals;

void Liveness::start(TimePoint now, Duration rtt) {
  started_ = true;
  if (rtt > 0ns) srtt_ = rtt;
  waiting_since_.reset();
  if (contact_.since == TimePoint{}) {  // the handshake was a round trip
    contact_.heard = now;
    confirm(now - rtt, now);
  }
  // The first ping is sent at once, so that the round trip is known soon.
  last_due_ = now;
  ping_due_ = true;
}

void Liveness::on_timeout(TimePoint now, bool busy) {
  if (!started_ || now < next_ping(busy)) return;
  last_due_ = now;
  ping_due_ = true;
  // A carrier without room even for a ping is as silent as one without answers.
  if (!waiting_since_) waiting_since_ = now;
}

Duration Liveness::ping_interval(bool busy) const {
  return busy ? std::clamp<Duration>(srtt_ / 2, 250ms, kBusyPing) : 1s;
}

std::uint64_t Liveness::make_ping(TimePoint now) {
  ping_due_ = false;
  sent_at_[++last_number_ % kTimedPings] = now;
  return last_number_;
}

void Liveness::on_heard(TimePoint now) {
  waiting_since_.reset();
  contact_.heard = now;
}

void Liveness::confirm(TimePoint sent, TimePoint now) {
  if (contact_.since == TimePoint{} || now - contact_.confirmed > kApart) contact_.since = now;
  contact_.confirmed = std::max(contact_.confirmed, sent);
}

void Liveness::on_pong(std::uint64_t number, TimePoint now) {
  questions_.on_answered(number);
  if (number <= last_answered_ || number > last_number_ || last_number_ - number >= kTimedPings) return;
  last_answered_ = number;
  confirm(sent_at_[number % kTimedPings], now);
  // RFC 6298, section 2.3.
  Duration sample = now - sent_at_[number % kTimedPings];
  srtt_ = srtt_ == 0ns ? sample : srtt_ + (sample - srtt_) / 8;
}

bool Liveness::overdue(TimePoint now) const {
  // The carrier and both loops need some time of their own, and round trips vary by half of their length.
  return started_ && waiting_since_ && now >= *waiting_since_ + srtt_ + std::max<Duration>(srtt_ / 2, 50ms);
}

std::optional<TimePoint> Liveness::silent_at(bool busy) const {
  if (!started_ || !waiting_since_) return std::nullopt;
  // Idle: a ping per second and two seconds for its answer make three. A long path gets its four round trips
  // then, too.
  Duration patience = std::max<Duration>(busy ? 1s : 2s, 4 * srtt_);
  return *waiting_since_ + patience;
}

std::optional<TimePoint> Liveness::next_timeout(bool busy, bool known_silent) const {
  if (!started_) return std::nullopt;
  TimePoint next = next_ping(busy);
  if (auto silent = silent_at(busy); silent && !known_silent) next = std::min(next, *silent);
  return next;
}

}  // namespace longhaul::link
