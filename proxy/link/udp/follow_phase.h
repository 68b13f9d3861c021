// SPDX-License-Identifier: Apache-2.0
// How a law that measures follows a line whose rate varies all the time, as that of a radio: it keeps a short
// queue, so that arrivals show the line's present rate, and sends at that rate. It ends when the line has
// become steady, or when the queue turns out to be that of other traffic.
#pragma once
#include <cstdint>
#include <optional>

#include "proxy/link/udp/experiments.h"
#include "proxy/link/udp/line_model.h"
#include "proxy/link/udp/windowed.h"

namespace longhaul::link::udp {

class FollowPhase {
 public:
  explicit FollowPhase(std::uint32_t packet_bytes) : packet_bytes_(packet_bytes) {}

  Plan begin(TimePoint now, const LineModel& line);
  // Sets the line's rate. `new_round`: a round trip has passed.
  void on_sample(const RateSample& sample, LineModel& line, bool new_round);
  // What follows; to be called after on_sample().
  enum class Next : std::uint8_t {
    stay,
    compete,  // others fill the queue
    stop,     // the line is steady, or there is too little to send
  };
  Next next(TimePoint now, const LineModel& line) const;
  // Bytes that may be in flight: no more waits for a line that stands still.
  double window(const LineModel& line) const;

  // The queue that is kept. It lasts until a faster line is noticed, a round trip later.
  Duration target(const LineModel& line) const;

 private:
  void on_round(const LineModel& line);
  void on_arrivals(TimePoint now, double rate, bool new_round, LineModel& line);

  std::uint32_t packet_bytes_;

  // ---- Of this round trip.
  std::optional<Duration> least_queue_;
  double acked_ = 0, lost_ = 0;  // bytes

  // ---- Of the latest ones.
  unsigned signs_of_others_ = 0;    // as long as the queue never became as short as it is meant to be
  std::uint32_t lossy_rounds_ = 0;  // a bit for each
  double arrivals_ = 0;             // bytes per second, the mean
  WindowedMinimum<double> least_{Duration{0}};  // of that mean, since steady_since_ or for steady_time()
  WindowedMaximum<double> most_{Duration{0}};
  TimePoint steady_since_{};  // or later
  TimePoint measured_at_{};
  std::optional<TimePoint> too_little_since_;  // to send
};

}  // namespace longhaul::link::udp
