// SPDX-License-Identifier: Apache-2.0
// How much of a shared line is this sender's, and how it converges with other links to even shares. The
// reaction of the queue to a higher rate reveals other traffic; a burst measures the capacity of the line,
// and then the share is known well enough to move towards half. Sending is left to the law.
#pragma once
#include "proxy/link/udp/capacity_probe.h"
#include "proxy/link/udp/faster_step.h"
#include "proxy/link/udp/line_watch.h"

namespace longhaul::link::udp {

class LineShare {
 public:
  // `most`: bytes per second that are allowed; 0: no limit.
  LineShare(std::uint32_t packet_bytes, double most)
      : packet_bytes_(packet_bytes), most_(most > 0 ? most : 1e18) {}

  void on_sample(const RateSample& sample) { probe_.on_sample(sample); }
  // The law gives way, and another sender may be gone: nothing is known.
  void forget() { by_queue_ = 1; }

  // Of what the line carries, 0 to 1, at the rate `line`.
  double of(double line) const;
  // How much faster and slower the law sends to learn: enough to be seen as a queue, and not more than the
  // queue may hold. Where only the queue indicates the share, the step is larger for a smaller share.
  double step_size(const LineWatch& watch, Duration span) const;

  // What a faster step has shown. `after`: seconds that the queue was long when it was answered. False: too
  // little was to be seen.
  bool learn(const FasterStep& step, double after, const LineWatch& watch, Duration span, double line);
  // The rate at which to continue: all links that share a line move to the same share; the queue takes back
  // any excess from all. `more`: the step found room.
  double draw_even(TimePoint now, double line, bool more);

  // ---- Bursts. Not of a link that seems to be alone. With jitter, a burst must be long compared to it; and
  // on a slow line it would be a queue that looks like other traffic: `longest` bounds what it adds.
  bool wants_burst(TimePoint now, double line, const LineWatch& watch, Duration longest) const;
  double burst_rate(double line) const;
  double burst_bytes(double line, const LineWatch& watch) const;
  void begin_burst(TimePoint now, std::uint16_t epoch, double line, const LineWatch& watch);
  // True: the burst has been sent.
  bool on_send(TimePoint now, std::uint64_t bytes) { return probe_.on_send(now, bytes); }

 private:
  double packets(double count) const { return count * packet_bytes_; }

  std::uint32_t packet_bytes_;
  double most_;
  double by_queue_ = 1;  // what a faster step gained, of what the queue took of it
  CapacityProbe probe_;
};

}  // namespace longhaul::link::udp
