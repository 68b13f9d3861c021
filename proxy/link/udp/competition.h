// SPDX-License-Identifier: Apache-2.0
// The mode of MeasuredLaw next to traffic that fills queues: a sender that waits for the queue to empty gets
// no share there, so this mode behaves like CUBIC, and checks now and then whether the queue has become its
// own. The law does the sending.
#pragma once
#include "proxy/link/udp/cubic_window.h"
#include "proxy/link/udp/line_watch.h"
#include "proxy/link/udp/rate_law.h"
#include "proxy/link/udp/windowed.h"

namespace longhaul::link::udp {

class Competition {
 public:
  explicit Competition(std::uint32_t packet_bytes) : packet_bytes_(packet_bytes) {}

  // `random_loss`: share of packets lost at any rate; `rate`: initial bytes per second; `span`: the law's
  // unit of time.
  void begin(TimePoint now, const LineWatch& watch, double random_loss, double rate, Duration span);
  // Returns the sending rate. `capacity`: of the whole line; 0: not known. `much`: a queue longer than this
  // sender itself causes.
  double on_sample(const RateSample& sample, const LineWatch& watch, double capacity, Duration much,
                   bool new_round);
  // The next step; to be called after on_sample().
  enum class Next : std::uint8_t {
    stay,
    look,     // send half as much for look_time(), to measure how much of the queue is ours
    compete,  // the look is over, and the queue still belongs to others
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
  double random_before_ = 0;  // loss at any rate
  TimePoint loss_counts_from_{};
  TimePoint next_look_{};
  TimePoint since_{};
  Duration fullest_queue_{0};
  WindowedMaximum<Duration> late_queue_{std::chrono::milliseconds(100)};
  Duration look_queue_{0};  // at the start of the look
  bool queue_was_much_ = false;
  bool overflows_ = false;  // the latest sample had losses caused by the queue
  Duration smoothed_rtt_{0};
  std::int64_t acked_ = 0, lost_ = 0;  // in this round trip
};

}  // namespace longhaul::link::udp
