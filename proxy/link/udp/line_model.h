// SPDX-License-Identifier: Apache-2.0
// What a law that measures knows of its line: rate, delays, losses, queue and share, and the times and
// lengths of queue that follow from them. What to send is left to the phases.
#pragma once
#include <optional>

#include "proxy/link/udp/line_share.h"
#include "proxy/link/udp/line_watch.h"
#include "proxy/link/udp/loss_tests.h"
#include "proxy/link/udp/rate_law.h"
#include "proxy/link/udp/standing_queue.h"

namespace longhaul::link::udp {

struct LineTerms {
  std::uint32_t packet_bytes = 1500;  // IP bytes of a full packet
  std::uint64_t max_rate = 0;         // bytes per second that are never exceeded; 0: no bound
  Duration initial_rtt{0};            // until one was measured
  double rate = 0;                    // bytes per second, the first estimate
};

class LineModel {
 public:
  LineModel(const LineTerms& terms, TimePoint now);

  struct Use {
    std::optional<double> capacity{};  // bytes per second, ours and others'; nothing while rates are guesses
    bool competes = false;             // traffic of others may fill the queue: the law follows or competes
  };
  void on_sample(const RateSample& sample, const Use& use);

  // A path that seemed to have a queue has become longer: what was concluded meanwhile is undone. A result:
  // it has become slower, too, and this is its rate.
  std::optional<double> undo_doubt();

  double rate() const { return rate_; }  // bytes per second of ours that the line carries
  void set_rate(double rate);
  void lower_for_losses(double rate);
  double bounded(double rate) const;  // by the most that is allowed

  double packets(double count) const { return count * terms_.packet_bytes; }  // bytes
  // A round trip, or the time of a few packets: the unit of all phases.
  Duration span() const;
  // So few packets are sent in a round trip that each step takes longer.
  bool is_stretched() const;
  Duration kept_queue() const;    // so that the line is never idle
  Duration queue_target() const;  // more than is left there on purpose
  Duration queue_limit() const;   // beyond what this sender makes itself
  // Hardly anything waits in the queue.
  bool is_calm() const;
  bool overflows() const { return watch.queue() > queue_target(); }

  // The rate at which the line accepted our packets. By departures and arrivals, which chance does not
  // change; limited by the arrivals if some of the loss is the line's answer to excess.
  std::optional<double> carried(const std::optional<DeliveryRate>& delivery) const;
  // The same while a queue stands.
  std::optional<double> busy_rate() const { return standing.busy_rate(tests.harmless_loss()); }
  // The line stood still for a moment, so there is a queue; but it is as fast as ever.
  bool stood_still(TimePoint now);

  double share() const { return sharing.of(rate_); }  // ours of what the line carries, 0 to 1
  double step_size() const { return sharing.step_size(watch, span()); }

  static constexpr Duration kQueue = std::chrono::milliseconds(1);  // the least that is kept

  static Duration times(Duration time, double factor) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds(time) * factor));
  }

 private:
  LineTerms terms_;
  double rate_;
  struct BeforeDoubt {
    double rate;
    LossByRate losses;
  };
  std::optional<BeforeDoubt> before_doubt_;  // when the watch began to doubt

 public:
  // Each part keeps its own rules.
  LineWatch watch;
  LossTests tests;
  LineShare sharing;
  StandingQueue standing;
};

}  // namespace longhaul::link::udp
