// SPDX-License-Identifier: Apache-2.0
// Measures the rate of a line without a configured rate, keeps it full with a minimal queue, and shares it
// fairly. Each phase has a part of its own; this is the order in which they follow each other.
#pragma once
#include <optional>

#include "proxy/link/udp/burst_phase.h"
#include "proxy/link/udp/compete_phase.h"
#include "proxy/link/udp/cruise_phase.h"
#include "proxy/link/udp/drain_phase.h"
#include "proxy/link/udp/experiments.h"
#include "proxy/link/udp/first_measurement.h"
#include "proxy/link/udp/line_model.h"
#include "proxy/link/udp/probe_phase.h"
#include "proxy/link/udp/rate_law.h"
#include "proxy/link/udp/seen_capacity.h"
#include "proxy/link/udp/start_phase.h"
#include "proxy/link/udp/test_phase.h"

namespace longhaul::link::udp {

struct MeasuredConfig {
  std::optional<PathMemory> memory{};                     // what an earlier carrier found, a hint
  Duration initial_rtt = std::chrono::milliseconds(333);  // until one was measured
  std::uint32_t packet_bytes = 1500;                      // IP bytes of a full packet
  std::uint64_t max_rate = 0;  // bytes per second that are never exceeded; 0: no bound
  std::uint64_t seed = 1;      // so that two links do not probe at the same time
};

// The line's rate is the arrival rate while a queue exists; it is probed by sending a little faster for a
// round trip, then as much slower. Lost packets used the line too, unless their share rises with the rate.
class MeasuredLaw final : public RateLaw {
 public:
  MeasuredLaw(const MeasuredConfig& config, TimePoint now);
  // Continues where another law stopped: the line carries about `rate`. Packets in flight have epochs below
  // `first_epoch`.
  MeasuredLaw(const MeasuredConfig& config, TimePoint now, const LineWatch& watch, const LossByRate& losses,
              double rate, std::uint16_t first_epoch);

  void on_sample(const RateSample& sample) override;
  void on_send(TimePoint now, std::uint64_t bytes, std::uint64_t in_flight_bytes) override;
  std::uint64_t pacing_rate() const override;
  std::uint64_t window() const override;
  std::uint16_t epoch() const override { return experiments_.number(); }
  RateView view() const override;

  // For the next carrier to this peer. No result if too little was sent to know.
  std::optional<PathMemory> memory() const;

  double line_rate() const { return line_.rate(); }  // bytes per second, the current estimate
  const LineWatch& watch() const { return line_.watch; }
  const LossByRate& losses() const { return line_.tests.losses(); }
  // Something that fills queues is on the line: do not give way to it.
  bool competing() const { return in(Phase::compete) || in(Phase::look); }
  // The line drops what is too much for it, without a queue.
  bool policed() const { return line_.tests.is_policed(); }
  // Ours of what the line carries, 0 to 1.
  double share() const { return line_.share(); }
  const char* describe() const { return name_of(experiments_.phase()); }  // the present phase
  bool settled() const { return is_settled(experiments_.phase()); }

 private:
  bool in(Phase phase) const { return experiments_.in(phase); }
  bool starting() const { return in(Phase::train) || in(Phase::ramp); }

  // ---- What a sample says, by phase.
  void note_losses(const RateSample& sample);
  void on_longer_path(TimePoint now);
  void on_start(const RateSample& sample);
  void on_settled(const RateSample& sample);
  void on_measured(const RateSample& sample, double rate);
  void on_competing(const RateSample& sample);

  // ---- What follows when it is time.
  void step(TimePoint now, std::uint64_t in_flight_bytes);
  void wait_for_answer(TimePoint now);
  void answer_standing_queue(TimePoint now);
  void next_phase(TimePoint now);
  void after_cruise(TimePoint now);
  void after_probe(TimePoint now);

  // ---- The phases begin.
  void begin(const Plan& plan, TimePoint now) { experiments_.begin(plan, line_.rate(), now); }
  void cruise(TimePoint now);
  void probe(TimePoint now);
  // A rate far below what the line carried before is measured anew: raising it step by step would take a
  // minute.
  bool is_lost(TimePoint now) const;
  void begin_anew(TimePoint now);
  void drain(TimePoint now) { begin(drain_.begin(now, line_), now); }
  void stop_competing(TimePoint now);

  // ---- Answers to a queue.
  void ease(TimePoint now);
  void give_way(TimePoint now, double rate);
  bool may_drain(TimePoint now) const { return drain_.may_begin(now) && !in(Phase::drain); }
  // The queue that the line made by standing still is drained, if none was just before.
  void drain_standstill(TimePoint now);

  MeasuredConfig config_;
  LineModel line_;
  SeenCapacity capacity_;
  Experiments experiments_;

  StartPhase start_;
  FirstMeasurement first_;
  CruisePhase cruise_;
  ProbePhase probe_;
  TestPhase test_;
  DrainPhase drain_;
  CompetePhase compete_;

  // Bytes per second that the line seemed to carry; divided by kLost at each new beginning.
  double promised_ = 0;
  std::uint64_t last_round_ = 0;
  bool measured_ = false;  // by the latest measurement, while settled
};

}  // namespace longhaul::link::udp
