// SPDX-License-Identifier: Apache-2.0
// Whether a queue that a sender keeps short is filled by others. A line whose rate falls has a queue that is
// too long for some round trips; that of others stays, however much less is sent, or overflows again and
// again.
#pragma once
#include <cstdint>
#include <optional>

#include "proxy/link/udp/line_model.h"

namespace longhaul::link::udp {

class SignsOfOthers {
 public:
  explicit SignsOfOthers(std::uint32_t packet_bytes) : packet_bytes_(packet_bytes) {}

  void on_sample(const RateSample& sample, const LineModel& line);
  // A round trip has passed. `target`: as long as the queue is meant to be; `tries`: more is sent than the
  // line carries, to find out how much that is.
  void on_round(const LineModel& line, Duration target, bool tries);

  bool are_enough() const;
  // More was lost than by chance, in the latest round trip.
  bool loses() const { return loses_; }

 private:
  void note_losses(double harmless);

  std::uint32_t packet_bytes_;

  // ---- Of this round trip, or of several with few packets.
  std::optional<Duration> least_queue_;
  double acked_ = 0, lost_ = 0;  // bytes

  // ---- Of the latest ones.
  double too_long_ = 0;             // since the queue was short enough
  unsigned tried_rounds_ = 0;       // the same
  std::uint32_t lossy_rounds_ = 0;  // a bit for each
  bool loses_ = false;
};

}  // namespace longhaul::link::udp
