// SPDX-License-Identifier: Apache-2.0
// Whether losses are chance, or the line's answer to a rate that is too high: when to test it, by sending
// much less for a round trip, and what the tests have found. Sending is left to the law.
#pragma once
#include <algorithm>
#include <optional>

#include "proxy/link/udp/loss_by_rate.h"
#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

class LossTests {
 public:
  LossTests(std::uint32_t packet_bytes, TimePoint now);
  // Continues with what another law has seen.
  void adopt(const LossByRate& losses);

  LossByRate& losses() { return losses_; }
  const LossByRate& losses() const { return losses_; }

  // Loss that is not the line's answer to a rate that is too high. A little more than was known is harmless,
  // too: otherwise the rate would fall without end when the line's loss changes.
  double harmless_loss() const;
  // A test has found it, or the present loss is too little to be worth a test.
  bool is_harmless() const;
  // The line drops what exceeds its rate, without a queue.
  bool is_policed() const { return random_.has_value(); }
  // For losses the rate falls no further until a test has shown again that they depend on it: where they do
  // not, every lower rate has them too, and there would be no end.
  double least_rate() const { return fastest_ / 2; }
  void on_rate(double rate) { fastest_ = std::max(fastest_, rate); }

  // `span`: the law's unit of time.
  bool is_due(TimePoint now, Duration span) const;
  void test_soon();
  // A test is over. Nothing: losses do not depend on the rate.
  struct Policed {
    double random_loss;  // that remained at the lower rate
    double lower;        // the part of the rate at which that was
  };
  std::optional<Policed> finish(TimePoint now, Duration span);

 private:
  LossByRate losses_;
  TimePoint tested_at_;
  TimePoint next_test_;
  Duration interval_{0};
  bool known_ = false;            // a test found that up to `tested_loss_` losses do not depend on the rate
  double tested_loss_ = 0.12;     // at the start little loss can wait: most transfers are short
  double fastest_ = 0;            // bytes per second, since a test found that losses depend on the rate
  std::optional<double> random_;  // a test found that losses depend on the rate: what is lost besides
};

}  // namespace longhaul::link::udp
