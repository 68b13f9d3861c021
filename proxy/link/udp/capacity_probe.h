// SPDX-License-Identifier: Apache-2.0
// Measures the total capacity of a shared line: a short burst is spread by the packets of other traffic.
// Beside traffic X, a burst sent at rate I arrives at C I / (I + X) (Melander, Bjorkman and Gunningberg, "A
// new end-to-end probing and analysis method for estimating bandwidth bottlenecks", 2000; on a full line X is
// the rest of C). MeasuredLaw decides when to send one.
#pragma once
#include <cstdint>
#include <optional>

#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

class CapacityProbe {
 public:
  struct Burst {
    std::uint16_t epoch = 0;  // of its packets
    double usual_rate = 0;    // bytes per second, the sending rate before and after it
    double rate = 0;          // bytes per second, at least kLeast times the usual one
    double bytes = 0;
  };

  void begin(TimePoint now, const Burst& burst);
  // Returns true when the burst was sent completely. A burst sent all at once, or much too slowly, is
  // useless.
  bool on_send(TimePoint now, std::uint64_t bytes);
  void on_sample(const RateSample& sample);

  // Bytes per second, the mean of the latest bursts. Returns nullopt before two of them succeeded.
  std::optional<double> capacity() const;
  // The line has changed, or the other traffic has ended.
  void forget();
  // Whether no burst succeeded for so long that the estimate is outdated.
  bool is_old(TimePoint now) const;
  // Whether several bursts in a row were useless: on a slow line too few packets of each are acknowledged
  // separately.
  bool in_vain(TimePoint now) const;

  static constexpr double kLeast = 1.3;

 private:
  // A packet that is known to have arrived, and all bytes sent up to it: packets lost in between used the
  // line too.
  struct Place {
    Duration arrival{0};
    std::uint64_t bytes = 0;
  };
  void conclude(const Place& first, const Place& last, TimePoint now);

  Burst burst_;
  TimePoint began_at_{};
  double left_ = 0;       // bytes of the burst that are not sent yet
  bool answered_ = true;  // the burst is complete, or was given up
  std::optional<Place> first_, last_;
  unsigned in_vain_ = 0;  // failed bursts since the last success
  TimePoint told_at_{};
  unsigned bursts_ = 0;  // in the mean:
  double seconds_per_byte_ = 0;
};

}  // namespace longhaul::link::udp
