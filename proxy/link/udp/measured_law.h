// SPDX-License-Identifier: Apache-2.0
// Measures the rate of a line without a configured rate, keeps it full with a minimal queue, and shares it
// fairly.
#pragma once
#include <array>
#include <optional>
#include <random>
#include <utility>

#include "proxy/link/udp/busy_rate.h"
#include "proxy/link/udp/capacity_probe.h"
#include "proxy/link/udp/cubic_window.h"
#include "proxy/link/udp/line_watch.h"
#include "proxy/link/udp/loss_by_rate.h"
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
  std::uint64_t pacing_rate() const override;
  std::uint64_t window() const override;
  std::uint16_t epoch() const override { return epoch_; }
  RateView view() const override;

  // For the next carrier to this peer. No result if too little was sent to know.
  std::optional<PathMemory> memory() const;

  double line_rate() const { return line_; }  // bytes per second, the current estimate
  const LineWatch& watch() const { return watch_; }
  const LossByRate& losses() const { return losses_; }
  // Traffic that fills queues shares the line: do not give way to it.
  bool competing() const { return phase_ == Phase::compete || phase_ == Phase::look; }
  // The line drops excess packets, without a queue.
  bool policed() const { return known_random_.has_value(); }
  // Our share of the line, 0 to 1.
  double share() const;
  const char* describe() const;  // the current phase, for logs and traces
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
  void on_train(const RateSample& sample);
  void on_ramp(const RateSample& sample);
  void on_settled(const RateSample& sample);
  void on_competing(const RateSample& sample);
  void after_up(TimePoint now);
  void begin_up(TimePoint now);
  void begin_cruise(TimePoint now);
  void begin_drain(TimePoint now);
  bool may_give_way(TimePoint now);
  void give_way(TimePoint now, double rate);
  void begin_competing(TimePoint now);
  void stop_competing(TimePoint now);
  bool test_is_due(TimePoint now) const;
  void after_test(TimePoint now);
  void watch_mean_queue(TimePoint now);
  std::optional<double> carried(const std::optional<DeliveryRate>& delivery) const;
  void note_piece(const RateSample& sample);
  void grow_by_piece(TimePoint now);
  void learn_share(double size, double after, bool more);
  void draw_even(TimePoint now, bool more);
  bool wants_burst(TimePoint now) const;
  double burst_rate() const;
  double burst_bytes() const;
  void begin_burst(TimePoint now);
  void rest_after_burst(TimePoint now);
  void ease(TimePoint now);
  Duration queue_limit() const;
  std::optional<double> busy_rate() const;
  bool came_at_once() const;
  bool stood_still() const;
  bool drain_standstill(TimePoint now);
  bool is_harmless(double loss) const;
  void test_soon();
  double chance();
  double harmless_loss() const;
  const Epoch* find(std::uint16_t number) const;
  void set_line(double rate);
  Duration span() const;
  double step_size() const;
  bool is_calm() const;
  Duration queue_target() const;
  Duration noticed_queue() const;
  double packets(double count) const { return count * config_.packet_bytes; }

  static Duration times(Duration time, double factor) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds(time) * factor));
  }

  static constexpr Duration kQueue = std::chrono::milliseconds(1);  // kept, so that the line is never idle
  static constexpr int kGaveWayFor = 40;                            // spans in which giving way is remembered
  static constexpr double kTrainPackets = 32;
  static constexpr Duration kTrainTime = std::chrono::milliseconds(2);  // in which they are sent

  MeasuredConfig config_;
  LineWatch watch_;
  LossByRate losses_;
  BusyRate busy_;  // while the queue is longer than our own
  std::minstd_rand random_;
  double line_;
  double gain_ = 1;
  Phase phase_ = Phase::train;
  TimePoint phase_until_{};
  std::uint16_t epoch_ = 0;
  std::array<Epoch, 64> epochs_{};

  // Start-up.
  bool starting_ = true;               // nothing was measured yet at the rate found
  std::optional<TimePoint> found_at_;  // when the first packet left at that rate
  std::optional<double> train_;        // what the first packets' distances said
  std::uint64_t ramp_round_ = 0;
  unsigned flat_rounds_ = 0;
  double previous_rate_ = 0;  // of the round before this one
  double round_best_ = 0;
  double round_arrived_ = 0;
  double ramp_loss_ = 0.1;  // share lost before the current round of the ramp
  std::int64_t round_acked_ = 0, round_lost_ = 0;

  // Settled.
  double up_best_ = 0;
  std::uint64_t up_piece_bytes_ = 0;  // the longest piece that was sent in it without a pause,
  double up_piece_ = 0;               // and the rate at which it was carried
  bool learnt_by_piece_ = false;
  double up_base_ = 0;  // the rate that `up` went up from
  double up_rate_ = 0;
  double up_queue_ = 0;                       // seconds, when it began
  std::optional<double> up_queue_at_answer_;  // when the first packet of it was acknowledged
  double up_queue_after_ = 0;                 // when the first one after it was
  std::uint16_t up_epoch_ = 0;
  bool up_answered_ = false;
  bool growing_ = false;
  double growth_ = 0;          // step of the next `up` while there is more to be had
  double share_by_queue_ = 1;  // what `up` gained, of what the queue took of it
  CapacityProbe probe_;
  std::uint64_t last_round_ = 0;
  TimePoint cruise_since_{};
  TimePoint eased_at_{};  // to a queue while cruising
  TimePoint no_drain_before_{};
  TimePoint tested_at_{};
  TimePoint next_test_{};
  Duration test_interval_{0};
  bool losses_known_ = false;  // a test found that up to `tested_loss_` they do not depend on the rate
  double tested_loss_ = 0.12;  // at the start little loss can wait: most transfers are short
  double carried_ = 0;         // by the latest ACK
  double arrived_ = 0;         // bytes per second, lately
  std::optional<double> known_random_;  // a test found that the line drops excess packets: the loss then

  // Other traffic.
  double mean_queue_ = 0;  // seconds, over the last spans
  TimePoint mean_since_{};
  unsigned gave_way_ = 0;  // times one soon after the other, to a queue that stood
  TimePoint gave_way_at_{};
  unsigned standstills_ = 0;  // since then:
  TimePoint standstills_since_{};
  TimePoint mean_at_{};
  CubicWindow cubic_;
  double random_before_ = 0;  // loss that does not depend on the rate
  TimePoint loss_counts_from_{};
  TimePoint next_look_{};
  TimePoint competing_since_{};
  Duration fullest_queue_{0};
  WindowedMaximum<Duration> late_queue_{std::chrono::milliseconds(100)};
  Duration look_queue_{0};  // at its start
  bool queue_was_much_ = false;
  Duration smoothed_rtt_{0};
  double capacity_ = 0;  // of the line, ours or not, as far as was seen recently; bytes per second
  TimePoint capacity_at_{};
};

}  // namespace longhaul::link::udp
