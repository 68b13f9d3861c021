// SPDX-License-Identifier: Apache-2.0
// Measures the rate of a line without a configured rate, keeps it full with a minimal queue, and shares it
// fairly: what each sample means for the line, its queue and the present phase. phase_order.h has the phases.
#pragma once
#include <optional>

#include "proxy/link/udp/line_model.h"
#include "proxy/link/udp/phase_order.h"
#include "proxy/link/udp/rate_law.h"

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
  std::uint64_t pacing_rate() const override { return phases_.pacing_rate(); }
  std::uint64_t window() const override { return phases_.window(); }
  std::uint16_t epoch() const override { return phases_.present().number(); }
  RateView view() const override;

  // For the next carrier to this peer. No result if too little was sent to know.
  std::optional<PathMemory> memory() const;

  double line_rate() const { return line_.rate(); }  // bytes per second, the current estimate
  const LineWatch& watch() const { return line_.watch; }
  const LossByRate& losses() const { return line_.tests.losses(); }
  // Something that fills queues is on the line: do not give way to it.
  bool competing() const { return phases_.competing(); }
  // Each sample sets the rate: the law follows the line, or competes.
  bool reacting() const { return phases_.reacting(); }
  // The line drops what is too much for it, without a queue.
  bool policed() const { return line_.tests.is_policed(); }
  // Ours of what the line carries, 0 to 1.
  double share() const { return line_.share(); }
  const char* describe() const { return name_of(phases_.present().phase()); }  // the present phase
  bool settled() const { return is_settled(phases_.present().phase()); }

 private:
  void on_settled(const RateSample& sample);
  void on_measured(const RateSample& sample, double rate);
  // A round trip has passed since the last sample for which this was asked.
  bool is_new_round(const RateSample& sample);
  void step(TimePoint now, std::uint64_t in_flight_bytes);

  std::optional<PathMemory> remembered_;
  LineModel line_;
  PhaseOrder phases_;
  std::uint64_t last_round_ = 0;
};

}  // namespace longhaul::link::udp
