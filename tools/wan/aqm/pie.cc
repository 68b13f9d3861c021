// SPDX-License-Identifier: Apache-2.0
#include "tools/wan/aqm/pie.h"

#include <algorithm>

namespace longhaul::wan {
namespace {

constexpr double kAlpha = 0.125, kBeta = 1.25;  // section 4.2, per second of delay
constexpr double kMarkLimit = 0.1;              // section 5.1: beyond it, packets are dropped in spite of ECN
constexpr std::uint64_t kMeanPacket = 1024;     // as in the RFC's appendix
// After a pause the probability has long decayed.
constexpr int kMostUpdates = 4096;

// Section 4.2: the smaller the probability, the smaller its steps.
double scaled(double step, double probability) {
  if (probability < 0.000001) return step / 2048;
  if (probability < 0.00001) return step / 512;
  if (probability < 0.0001) return step / 128;
  if (probability < 0.001) return step / 32;
  if (probability < 0.01) return step / 8;
  if (probability < 0.1) return step / 2;
  return step;
}

}  // namespace

PieQueue::PieQueue(const AqmConfig& config, std::uint64_t seed)
    : ecn_(config.ecn),
      target_(config.target > Duration{0} ? std::chrono::duration<double>(config.target).count() : 0.015),
      chance_(seed, 7) {}

void PieQueue::set_line(std::uint64_t rate_bits, std::uint64_t limit_bytes) {
  rate_bits_ = rate_bits;
  limit_bytes_ = limit_bytes;
}

double PieQueue::delay() const {
  return rate_bits_ ? static_cast<double>(queue_.bytes()) * 8 / static_cast<double>(rate_bits_) : 0;
}

void PieQueue::update_until(TimePoint now) {
  if (!next_update_) next_update_ = now + kUpdate;
  for (int i = 0; *next_update_ <= now; ++i) {
    if (i == kMostUpdates) next_update_ = now;
    update();
    *next_update_ += kUpdate;
  }
}

void PieQueue::update() {
  const double current = delay();
  double step = scaled(kAlpha * (current - target_) + kBeta * (current - old_delay_), drop_probability_);
  if (drop_probability_ >= 0.1) step = std::min(step, 0.02);  // section 5.5
  drop_probability_ += step;
  if (current == 0 && old_delay_ == 0) drop_probability_ *= 0.98;
  drop_probability_ = std::clamp(drop_probability_, 0., 1.);
  // Section 4.4, after the probability's update.
  burst_allowance_ = std::max(Duration{0}, burst_allowance_ - kUpdate);
  if (drop_probability_ == 0 && current < target_ / 2 && old_delay_ < target_ / 2)
    burst_allowance_ = kMaxBurst;
  old_delay_ = current;
}

bool PieQueue::wants_to_drop() {
  if (burst_allowance_ > Duration{0}) return false;
  if (old_delay_ < target_ / 2 && drop_probability_ < 0.2) return false;
  if (queue_.bytes() <= 2 * kMeanPacket) return false;
  return chance_.happens(drop_probability_);
}

void PieQueue::enqueue(const QueuedPacket& packet, TimePoint now, Packets& dropped) {
  update_until(now);
  QueuedPacket taken = packet;
  const bool full = queue_.bytes() + packet.bytes > limit_bytes_;
  if (full || (wants_to_drop() && !(drop_probability_ <= kMarkLimit && mark(taken, ecn_))))
    dropped.push_back(packet);
  else
    queue_.push(taken);
}

std::optional<QueuedPacket> PieQueue::dequeue(TimePoint now, Packets&) {
  update_until(now);
  return queue_.pop();
}

}  // namespace longhaul::wan
