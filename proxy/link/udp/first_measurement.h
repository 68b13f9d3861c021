// SPDX-License-Identifier: Apache-2.0
// Whether packets sent at the rate found at the start have measured that rate yet. Earlier packets, and those
// sent slowly while the queue of the start drained, met this sender's own queue or show only its slowness.
#pragma once
#include <optional>

#include "proxy/link/udp/experiments.h"

namespace longhaul::link::udp {

class FirstMeasurement {
 public:
  explicit FirstMeasurement(bool pending) : pending_(pending) {}

  bool pending() const { return pending_; }
  // For a measurement, while pending. `sent_in`: the phase of its last packet, if it is remembered. Returns
  // false if it shows nothing about the rate found.
  bool counts(const RateSample& sample, const Experiments::Past* sent_in) {
    if (!sent_in || sent_in->phase == Phase::train || sent_in->phase == Phase::ramp ||
        sent_in->phase == Phase::drain)
      return false;
    if (!found_at_) found_at_ = sample.sent_at;
    pending_ = sample.sent_at - sample.delivery->interval < *found_at_;
    return true;
  }

 private:
  bool pending_;
  std::optional<TimePoint> found_at_;  // when the first packet was sent at the rate found
};

}  // namespace longhaul::link::udp
