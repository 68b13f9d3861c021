// SPDX-License-Identifier: Apache-2.0
// The phases in which a law that measures does not know its line yet: how many packets leave at once, and
// what their answers say of the line's rate. start_ramp.h has the round trips, packet_time.h the limit on
// slow lines.
#pragma once
#include <optional>

#include "proxy/link/udp/line_model.h"
#include "proxy/link/udp/packet_time.h"
#include "proxy/link/udp/start_ramp.h"

namespace longhaul::link::udp {

class StartPhase {
 public:
  // `packet_bytes`: IP bytes of a full packet; `max_rate`: bytes per second that are never exceeded; 0: no
  // bound.
  StartPhase(std::uint32_t packet_bytes, std::uint64_t max_rate)
      : packet_bytes_(packet_bytes), max_rate_(max_rate), ramp_(packet_bytes) {}

  // Every sample of the start, before on_train() or on_ramp().
  void note(const RateSample& sample) { packet_time_.on_sample(sample); }
  // The rate was lost, not the line: a few packets at once will do, which are no long queue if it is slow.
  void begin_again() {
    most_packets_ = 8;
    ramp_ = StartRamp(packet_bytes_);
  }
  // Packets at once: fewer on a line that is known to be slow.
  double train_packets() const;
  // The rate to go on with is not above what is allowed, nor far above what a slow line showed.
  StartRamp::Step on_train(const RateSample& sample, const LineModel& line);
  StartRamp::Step on_ramp(const RateSample& sample, const LineModel& line);

 private:
  double most() const;
  StartRamp::Around around(const LineModel& line) const;

  std::uint32_t packet_bytes_;
  std::uint64_t max_rate_;
  double most_packets_ = StartRamp::kTrainPackets;
  PacketTime packet_time_;
  StartRamp ramp_;
};

}  // namespace longhaul::link::udp
