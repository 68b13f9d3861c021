// SPDX-License-Identifier: Apache-2.0
// The phases of a law that measures, and the order in which they follow each other: by time, by what a phase
// concludes, and by the answers to a queue. Each phase has a part of its own; what a sample means beyond the
// present phase is left to MeasuredLaw.
#pragma once
#include "proxy/link/udp/burst_phase.h"
#include "proxy/link/udp/compete_phase.h"
#include "proxy/link/udp/cruise_phase.h"
#include "proxy/link/udp/drain_phase.h"
#include "proxy/link/udp/experiments.h"
#include "proxy/link/udp/first_measurement.h"
#include "proxy/link/udp/follow_phase.h"
#include "proxy/link/udp/line_model.h"
#include "proxy/link/udp/lost_rate.h"
#include "proxy/link/udp/probe_phase.h"
#include "proxy/link/udp/queue_answer.h"
#include "proxy/link/udp/seen_capacity.h"
#include "proxy/link/udp/start_phase.h"
#include "proxy/link/udp/test_phase.h"

namespace longhaul::link::udp {

class PhaseOrder {
 public:
  struct Terms {
    std::uint32_t packet_bytes = 1500;  // IP bytes of a full packet
    std::uint64_t max_rate = 0;         // bytes per second that are never exceeded; 0: no bound
    std::uint64_t seed = 1;             // so that two links do not probe at the same time
  };
  // `line` outlives it. One of the next three begins it.
  PhaseOrder(const Terms& terms, LineModel& line);
  PhaseOrder(const PhaseOrder&) = delete;
  PhaseOrder& operator=(const PhaseOrder&) = delete;

  void begin_unknown(TimePoint now);
  void begin_remembered(TimePoint now);  // the line's rate is that of an earlier law
  // Another law stopped, and the line carries about `rate`. Packets in flight have epochs below
  // `first_epoch`.
  void begin_after(double rate, std::uint16_t first_epoch, TimePoint now);

  // ---- The present phase.
  const Experiments& present() const { return experiments_; }
  bool in(Phase phase) const { return experiments_.in(phase); }
  bool starting() const { return in(Phase::train) || in(Phase::ramp); }
  bool competing() const { return in(Phase::compete) || in(Phase::look); }
  bool following() const { return in(Phase::follow); }
  // Neither plans its phases: each sample sets the rate.
  bool reacting() const { return competing() || following(); }
  // The rate found at the start was measured.
  bool knows_rate() const { return !starting() && !first_.pending(); }
  LineModel::Use use() const;
  // What may be sent.
  std::uint64_t pacing_rate() const;
  std::uint64_t window() const;

  // ---- What a sample says to it. The line's model has it already.
  void note(const RateSample& sample);  // every sample, first
  void on_start(const RateSample& sample);
  void on_following(const RateSample& sample, bool new_round);
  void on_competing(const RateSample& sample, bool new_round);
  // While settled: a measurement. Returns false if it shows nothing about the rate found at the start.
  bool on_measured(const RateSample& sample, double rate);
  // The same without one: there was too little to send.
  void on_piece(const RateSample& sample) { probe_.on_piece(sample, line_); }
  // What the law did about the queue that was none is undone.
  void on_longer_path(TimePoint now);
  // Something was learnt of the line since the beginning.
  bool has_learnt() const { return measured_ || probe_.learnt_by_piece() || reacting(); }

  // ---- What follows.
  void on_send(TimePoint now, std::uint64_t bytes);
  // When it is time; not while starting or reacting.
  void step(TimePoint now, std::uint64_t in_flight_bytes);
  bool may_drain(TimePoint now) const { return drain_.may_begin(now) && !in(Phase::drain); }
  void carry_out(const QueueAnswer& answer, TimePoint now);
  // In a cruise: answers a queue that is longer than it is meant to be.
  void ease(TimePoint now);

 private:
  void begin(const Plan& plan, TimePoint now) { experiments_.begin(plan, line_.rate(), now); }
  void cruise(TimePoint now);
  void probe(TimePoint now);
  void drain(TimePoint now) { begin(drain_.begin(now, line_), now); }
  void begin_anew(TimePoint now);
  void stop_reacting(TimePoint now);

  void wait_for_answer(TimePoint now);
  void next_phase(TimePoint now);
  void after_cruise(TimePoint now);
  void after_probe(TimePoint now);

  Terms terms_;
  LineModel& line_;
  SeenCapacity capacity_;
  Experiments experiments_;

  StartPhase start_;
  FirstMeasurement first_{true};
  CruisePhase cruise_;
  ProbePhase probe_;
  TestPhase test_;
  DrainPhase drain_;
  FollowPhase follow_;
  CompetePhase compete_;

  LostRate lost_;
  bool measured_ = false;  // by the latest measurement, while settled
};

}  // namespace longhaul::link::udp
