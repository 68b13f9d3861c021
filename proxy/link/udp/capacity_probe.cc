// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/capacity_probe.h"

#include <algorithm>

namespace longhaul::link::udp {

using namespace std::chrono_literals;

namespace {
constexpr Duration kMemory = 60s;  // afterwards the line may have changed
constexpr Duration kLate = 2ms;    // lateness of a sender's timers; of a receiver's stamps: half of it
constexpr double kNew = 0.1;       // weight of one burst in the mean
constexpr std::uint64_t kFewestTold = 4;  // packets between the first and the last reported one
constexpr unsigned kInVain = 3;           // bursts, before probing pauses
constexpr Duration kLeft = 20s;
}  // namespace

void CapacityProbe::begin(TimePoint now, const Burst& burst) {
  if (is_old(now)) forget();
  ++in_vain_;
  burst_ = burst;
  began_at_ = now;
  left_ = burst.bytes;
  answered_ = false;
  first_.reset();
}

bool CapacityProbe::on_send(TimePoint now, std::uint64_t bytes) {
  left_ -= static_cast<double>(bytes);
  if (left_ > 0) return false;
  const double meant = burst_.bytes / burst_.rate, took = seconds(now - began_at_);
  if (took > 1.5 * meant + seconds(kLate) || took < meant / 2 - seconds(kLate) / 2) answered_ = true;
  burst_.rate = std::min(burst_.rate, burst_.bytes / took);
  if (burst_.rate < kLeast * burst_.usual_rate) answered_ = true;
  return true;
}

void CapacityProbe::forget() {
  bursts_ = 0;
  in_vain_ = 0;
}

bool CapacityProbe::is_old(TimePoint now) const { return bursts_ > 0 && now - told_at_ > kMemory; }

bool CapacityProbe::in_vain(TimePoint now) const { return in_vain_ >= kInVain && now - began_at_ < kLeft; }

void CapacityProbe::on_sample(const RateSample& sample) {
  if (answered_ || !sample.forward_delay) return;
  if (sample.sent_epoch == burst_.epoch) {
    // by an independent clock
    const Duration arrival = sample.sent_at.time_since_epoch() + *sample.forward_delay;
    last_ = {arrival, sample.dispatched_bytes};
    if (!first_) first_ = last_;
  } else if (static_cast<std::int16_t>(sample.sent_epoch - burst_.epoch) > 0) {
    answered_ = true;
    if (left_ <= 0 && first_ && last_->bytes >= first_->bytes + kFewestTold * sample.full_packet_bytes)
      conclude(*first_, *last_, sample.now);
  }
}

// The time for one byte of all traffic: jitter changes it equally in both directions.
void CapacityProbe::conclude(const Place& first, const Place& last, TimePoint now) {
  const double time = seconds(last.arrival - first.arrival);
  if (time < seconds(kLate) / 2) return;
  const double bytes = static_cast<double>(last.bytes - first.bytes);
  const double found = std::max(0.0, time * burst_.rate / bytes - 1) / (burst_.rate - burst_.usual_rate);
  told_at_ = now;
  in_vain_ = 0;
  ++bursts_;
  seconds_per_byte_ += std::max(kNew, 1.0 / bursts_) * (found - seconds_per_byte_);
}

std::optional<double> CapacityProbe::capacity() const {
  if (bursts_ < 2 || seconds_per_byte_ <= 0) return std::nullopt;
  return 1 / seconds_per_byte_;
}

}  // namespace longhaul::link::udp
