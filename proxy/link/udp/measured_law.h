// SPDX-License-Identifier: Apache-2.0
// Measures the rate of a line without a configured rate, keeps it full with a minimal queue, and shares it
// fairly.
#pragma once
#include <array>
#include <optional>
#include <random>
#include <utility>

#include "proxy/link/udp/competition.h"
#include "proxy/link/udp/faster_step.h"
#include "proxy/link/udp/line_share.h"
#include "proxy/link/udp/line_watch.h"
#include "proxy/link/udp/loss_tests.h"
#include "proxy/link/udp/rate_law.h"
#include "proxy/link/udp/standing_queue.h"
#include "proxy/link/udp/start_ramp.h"

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
  std::uint16_t epoch() const override { return epoch_; }
  RateView view() const override;

  // For the next carrier to this peer. No result if too little was sent to know.
  std::optional<PathMemory> memory() const;

  double line_rate() const { return line_; }  // bytes per second, the current estimate
  const LineWatch& watch() const { return watch_; }
  const LossByRate& losses() const { return tests_.losses(); }
  // Something that fills queues is on the line: do not give way to it.
  bool competing() const { return phase_ == Phase::compete || phase_ == Phase::look; }
  // The line drops what is too much for it, without a queue.
  bool policed() const { return tests_.is_policed(); }
  // Ours of what the line carries, 0 to 1.
  double share() const { return share_.of(line_); }
  const char* describe() const;  // the present phase, for logs and traces
  bool settled() const {
    return phase_ == Phase::cruise || phase_ == Phase::up || phase_ == Phase::down ||
           phase_ == Phase::burst || phase_ == Phase::rest;
  }

 private:
  enum class Phase : std::uint8_t {
    train,    // a few packets at once: their spacing at the receiver shows the line's rate
    ramp,     // faster each round trip
    drain,    // the excess leaves the queue
    cruise,   // at the line's rate
    up,       // a little faster, for a round trip
    down,     // as much slower, while the answers to `up` come in
    test,     // much slower, for a round trip: is less lost then?
    compete,  // beside traffic that fills queues
    look,     // competing, for a moment slower: how much of the queue is ours?
    burst,    // some packets at once: what is the total capacity of the line?
    rest,     // their excess leaves the queue
  };
  struct Epoch {
    std::uint16_t number = 0;
    Phase phase = Phase::train;
    double rate = 0;
    LossByRate::Level level = LossByRate::Level::normal;
  };

  void enter(Phase phase, double gain, Duration time, TimePoint now);
  void step(TimePoint now, std::uint64_t in_flight_bytes);
  void on_start(const RateSample& sample);
  void on_settled(const RateSample& sample);
  void on_competing(const RateSample& sample);
  void after_up(TimePoint now);
  void begin_up(TimePoint now);
  void begin_cruise(TimePoint now);
  void begin_drain(TimePoint now);
  void give_way(TimePoint now, double rate);
  void begin_competing(TimePoint now);
  void stop_competing(TimePoint now);
  void after_test(TimePoint now);
  std::optional<double> carried(const std::optional<DeliveryRate>& delivery) const;
  void note_piece(const RateSample& sample);
  void grow_by_piece(TimePoint now);
  void learn_share(double after, bool more, TimePoint now);
  void begin_burst(TimePoint now);
  void rest_after_burst(TimePoint now);
  void ease(TimePoint now);
  Duration queue_limit() const;
  std::optional<double> busy_rate() const;
  bool drain_standstill(TimePoint now);
  double chance();
  const Epoch* find(std::uint16_t number) const;
  void set_line(double rate);
  Duration span() const;
  double step_size() const { return share_.step_size(watch_, span()); }
  bool is_calm() const;
  Duration queue_target() const;
  double packets(double count) const { return count * config_.packet_bytes; }

  static Duration times(Duration time, double factor) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds(time) * factor));
  }

  static constexpr Duration kQueue = std::chrono::milliseconds(1);  // kept, so that the line is never idle

  MeasuredConfig config_;
  LineWatch watch_;
  LossTests tests_;
  std::minstd_rand random_;
  double line_;
  double gain_ = 1;
  Phase phase_ = Phase::train;
  TimePoint phase_until_{};
  std::uint16_t epoch_ = 0;
  std::array<Epoch, 64> epochs_{};

  // Start-up.
  StartRamp start_;
  bool starting_ = true;               // nothing was measured yet at the rate found
  std::optional<TimePoint> found_at_;  // when the first packet left at that rate

  // Settled.
  FasterStep faster_;
  bool learnt_by_piece_ = false;
  bool growing_ = false;
  double growth_ = 0;  // step of the next `up` while there is more to be had
  LineShare share_;
  std::uint64_t last_round_ = 0;
  TimePoint cruise_since_{};
  TimePoint eased_at_{};  // to a queue while cruising
  TimePoint no_drain_before_{};
  double carried_ = 0;  // by the latest ACK
  double arrived_ = 0;  // bytes per second, lately

  // Other traffic.
  StandingQueue standing_;
  Competition competition_;
  double capacity_ = 0;  // of the line, ours or not, as far as was seen lately; bytes per second
  TimePoint capacity_at_{};
};

}  // namespace longhaul::link::udp
