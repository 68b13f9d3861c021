// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/rtt_estimator.h"

namespace longhaul::link::udp {

void RttEstimator::on_sample(Duration rtt, Duration ack_delay, TimePoint now) {
  if (rtt < Duration{0}) return;
  ack_delay = std::clamp<Duration>(ack_delay, Duration{0}, rtt);
  // The minimum ignores the receiver's claimed delay: a false one must not lower it.
  const Duration least = minimum_.value().value_or(rtt);
  const Duration adjusted = rtt - ack_delay >= std::min(least, rtt) ? rtt - ack_delay : rtt;
  latest_ = adjusted;
  minimum_.add(now, adjusted);
  lasting_minimum_.add(now, adjusted);
  if (!measured_) {
    measured_ = true;
    smoothed_ = adjusted;
    variation_ = adjusted / 2;
    return;
  }
  const Duration deviation = smoothed_ > adjusted ? smoothed_ - adjusted : adjusted - smoothed_;
  variation_ = (3 * variation_ + deviation) / 4;
  smoothed_ = (7 * smoothed_ + adjusted) / 8;
}

}  // namespace longhaul::link::udp
