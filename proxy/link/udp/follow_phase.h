// SPDX-License-Identifier: Apache-2.0
// How a law that measures follows a line whose rate varies all the time, as that of a radio: it keeps a short
// queue, so that arrivals show the line's present rate, and sends at that rate. It ends when the line has
// become steady, or when the queue turns out to be that of other traffic.
#pragma once
#include <cstdint>

#include "proxy/link/udp/experiments.h"
#include "proxy/link/udp/line_model.h"
#include "proxy/link/udp/signs_of_others.h"
#include "proxy/link/udp/windowed.h"

namespace longhaul::link::udp {

class FollowPhase {
 public:
  explicit FollowPhase(std::uint32_t packet_bytes) : packet_bytes_(packet_bytes), others_(packet_bytes) {}

  Plan begin(TimePoint now);
  // Sets the line's rate. `new_round`: a round trip has passed.
  void on_sample(const RateSample& sample, LineModel& line, bool new_round);
  // What follows; to be called after on_sample().
  enum class Next : std::uint8_t {
    stay,
    compete,  // others fill the queue
    stop,     // probing serves better: the line is steady, the queue never or always empty, or little is sent
  };
  Next next(TimePoint now, const LineModel& line) const;
  // Bytes that may be in flight: no more waits for a line that stands still.
  double window(const LineModel& line) const;

  // The queue that is kept. It lasts until a faster line is noticed, a round trip later.
  Duration target(const LineModel& line) const;
  // Bytes per second, the mean of the latest round trips; 0: not measured yet.
  double arrivals() const { return arrivals_; }

 private:
  void on_queue(TimePoint now, const LineModel& line);
  void on_arrivals(const RateSample& sample, bool new_round, LineModel& line);

  std::uint32_t packet_bytes_;
  SignsOfOthers others_;
  double arrivals_ = 0;
  WindowedMinimum<double> least_{Duration{0}};  // of arrivals_
  WindowedMaximum<double> most_{Duration{0}};
  TimePoint since_{};        // the line has not stood still
  TimePoint measured_at_{};  // the rate of arrivals
  TimePoint stood_still_at_{};
  TimePoint short_at_{};     // the queue was next to nothing
  TimePoint queued_at_{};    // it was more than that
  unsigned too_little_ = 0;  // counts samples since measured_at_ that showed no rate
  bool tries_ = false;       // what a line that has stood still carries
};

}  // namespace longhaul::link::udp
