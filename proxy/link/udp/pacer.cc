// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/pacer.h"

#include <algorithm>
#include <cmath>

namespace longhaul::link::udp {

namespace {
constexpr Duration kStep = std::chrono::microseconds(250);  // of the usual lateness, for each timer
}

Pacer::Pacer(TimePoint now, std::uint64_t bytes_per_second, std::uint32_t packet_bytes)
    : rate_(static_cast<double>(std::max<std::uint64_t>(bytes_per_second, 1))),
      packet_bytes_(packet_bytes),
      earned_at_(now),
      credit_(send_bytes()) {}

double Pacer::bytes_in(Duration time) const { return rate_ * std::chrono::duration<double>(time).count(); }
double Pacer::send_bytes() const { return std::max<double>(bytes_in(kSend), packet_bytes_); }

void Pacer::set_rate(TimePoint now, std::uint64_t bytes_per_second) {
  earn(now);
  rate_ = static_cast<double>(std::max<std::uint64_t>(bytes_per_second, 1));
  credit_ = std::min(credit_, most_credit(now));  // credit earned at a higher rate is a burst now
}

void Pacer::earn(TimePoint now) {
  if (now <= earned_at_) return;
  credit_ = std::min(credit_ + bytes_in(now - earned_at_), most_credit(now));
  earned_at_ = now;
}

Duration Pacer::lateness(TimePoint now) const {
  return waiting_ ? std::clamp<Duration>(now - wake_at_, Duration{0}, kMaxLateness) : Duration{0};
}

// A timer that is always late would lower the average rate if its lateness were not made up for. Time lost in
// a single stall of a host is not made up for: the line was idle meanwhile, and its queue should not take so
// much at once.
double Pacer::most_credit(TimePoint now) const {
  const double idle = std::max<double>(bytes_in(kBurst), packet_bytes_);
  return std::max(idle, send_bytes() + made_up(lateness(now)));
}

double Pacer::made_up(Duration lateness) const {
  return std::min(bytes_in(lateness), std::max(bytes_in(3 * usual_lateness_), kSafeBytes));
}

Duration Pacer::missed(TimePoint now) const {
  if (!waiting_ || now - wake_at_ <= 4 * usual_lateness_) return Duration{0};
  const std::chrono::duration<double> made_up_for(made_up(lateness(now)) / rate_);
  return std::max<Duration>(now - wake_at_ - std::chrono::floor<Duration>(made_up_for), Duration{0});
}

std::uint64_t Pacer::allowance(TimePoint now) {
  earn(now);
  // One packet may be sent as soon as there is any credit: at low rates it exceeds a millisecond's worth, and
  // the pacer waits for the debt. Half a packet more or less is not a burst.
  const double send = send_bytes();
  if (credit_ < std::min<double>(packet_bytes_, send)) return 0;
  if (waiting_) usual_lateness_ += std::clamp<Duration>((lateness(now) - usual_lateness_) / 8, -kStep, kStep);
  waiting_ = false;
  return static_cast<std::uint64_t>(std::min(credit_, send));
}

TimePoint Pacer::next_send(TimePoint now) {
  earn(now);
  const double missing = send_bytes() - credit_;
  if (missing <= 0) return now;
  const TimePoint at =
      earned_at_ + std::chrono::ceil<Duration>(std::chrono::duration<double>(missing / rate_));
  waiting_ = true;
  wake_at_ = at;
  return at;
}

void Pacer::on_sent(TimePoint now, std::uint64_t bytes) {
  earn(now);
  credit_ -= static_cast<double>(bytes);
}

void Pacer::on_idle(TimePoint now) {
  waiting_ = false;
  earn(now);
}

}  // namespace longhaul::link::udp
