// SPDX-License-Identifier: Apache-2.0
// A law that measures, beside traffic that fills queues: a sender that waits for the queue to empty gets
// nothing there, so it behaves like CUBIC, and checks now and then whether the queue is its own by now.
// Sending is left to the law.
#pragma once
#include "proxy/link/udp/cubic_window.h"
#include "proxy/link/udp/line_watch.h"
#include "proxy/link/udp/rate_law.h"
#include "proxy/link/udp/windowed.h"

namespace longhaul::link::udp {

class Competition {
 public:
  explicit Competition(std::uint32_t packet_bytes) : packet_bytes_(packet_bytes) {}

  // `random_loss`: share that is lost whatever the rate; `rate`: bytes per second to begin with; `span`: the
  // law's unit of time.
  void begin(TimePoint now, const LineWatch& watch, double random_loss, double rate, Duration span);
  // Returns the rate to send at. `capacity`: of the line, ours or not; 0: not known. `much`: a queue longer
  // than what this sender makes itself.
  double on_sample(const RateSample& sample, const LineWatch& watch, double capacity, Duration much,
                   bool new_round);
  // After that: what to do next.
  enum class Next : std::uint8_t {
    stay,
    look,     // send half as much for look_time(): how much of the queue is ours?
    compete,  // the look is over, and the queue is still that of others
    stop,     // nothing else fills the queue
  };
  Next while_competing(TimePoint now, const LineWatch& watch, Duration much, Duration span);
  Next while_looking(TimePoint now, TimePoint ends, const LineWatch& watch, Duration span);
  Duration look_time(const LineWatch& watch) const {
    return look_queue_ * 8 / 5 + watch.base_rtt() + look_queue_;
  }

  double window_packets() const { return cubic_.window(); }

 private:
  double packets(double count) const { return count * packet_bytes_; }
  void plan_look(TimePoint now, Duration span);

  std::uint32_t packet_bytes_;
  CubicWindow cubic_;
  double random_before_ = 0;  // loss that does not depend on the rate
  TimePoint loss_counts_from_{};
  TimePoint next_look_{};
  TimePoint since_{};
  Duration fullest_queue_{0};
  WindowedMaximum<Duration> late_queue_{std::chrono::milliseconds(100)};
  Duration look_queue_{0};  // when the look began
  bool queue_was_much_ = false;
  bool overflows_ = false;  // the latest sample had losses of the queue
  Duration smoothed_rtt_{0};
  std::int64_t acked_ = 0, lost_ = 0;  // in this round trip
};

}  // namespace longhaul::link::udp
