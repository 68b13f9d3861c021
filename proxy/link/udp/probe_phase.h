// SPDX-License-Identifier: Apache-2.0
// How a law that measures probes its line: a little faster for a round trip, as much slower for the next, and
// what the answer says about the line's rate and this sender's share. The phases that follow are left to the
// law.
#pragma once
#include "proxy/link/udp/experiments.h"
#include "proxy/link/udp/faster_step.h"
#include "proxy/link/udp/line_model.h"
#include "proxy/link/udp/seen_capacity.h"

namespace longhaul::link::udp {

class ProbePhase {
 public:
  // The faster step. After the law has begun the plan it calls on_begun(); `pace`: bytes per second.
  Plan up(const LineModel& line) const;
  void on_begun(std::uint16_t epoch, double pace, const LineModel& line);
  // What follows it. The queue that it caused leaves, and a little more: so that the empty line is seen
  // occasionally.
  Plan down(const LineModel& line) const;

  // The line took what was sent at `rate`, by this sample.
  void on_measured(const RateSample& sample, double rate, const LineModel& line);
  // The application sent too little to measure, but perhaps a piece that indicates a faster line.
  void on_piece(const RateSample& sample, const LineModel& line);

  // The queue that the step made delays its answer.
  bool is_answered(TimePoint now, TimePoint ended, const LineModel& line) const;
  enum class Next : std::uint8_t {
    cruise,
    drain,
    again,       // there was room: a larger step at once
    faster,      // the same, known by pieces only: earlier measurements do not hold for this rate
    standstill,  // the line stood still meanwhile, so the answer says nothing
  };
  Next conclude(TimePoint now, LineModel& line, SeenCapacity& capacity);

  bool growing() const { return growing_; }  // there is more to be had: steps follow each other
  void grow(double size) {
    growing_ = true;
    growth_ = size;
  }
  void stop_growing() { growing_ = false; }
  // The application had too little to send during the latest step.
  bool in_pieces() const { return step_.best() <= 0; }
  bool learnt_by_piece() const { return learnt_by_piece_; }

 private:
  Next conclude_by_piece(LineModel& line);
  Next stop(Next next) {
    growing_ = false;
    return next;
  }

  FasterStep step_;
  bool growing_ = false;
  double growth_ = 0;  // size of the next step while growing
  bool learnt_by_piece_ = false;
};

}  // namespace longhaul::link::udp
