// SPDX-License-Identifier: Apache-2.0
// The phases of MeasuredLaw, and the sending rate in each recent one. Other classes decide what each phase
// does, and which one follows.
#pragma once
#include <array>
#include <cstdint>

#include "proxy/link/udp/loss_by_rate.h"
#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

enum class Phase : std::uint8_t {
  train,    // a few packets at once: their spacing at the receiver shows the line's rate
  ramp,     // faster in each round trip
  drain,    // the excess drains from the queue
  cruise,   // at the line's rate
  up,       // a little faster, for a round trip
  down,     // as much slower, while acknowledgements of `up` arrive
  test,     // much slower, for a round trip: tests whether loss decreases
  follow,   // at the rate of arrivals: the line's rate varies
  compete,  // beside traffic that fills queues
  look,     // competing, briefly slower: measures how much of the queue is ours
  burst,    // some packets at once: measures the total capacity of the line
  rest,     // the burst's excess drains from the queue
};

const char* name_of(Phase phase);
// Whether the line's rate is known, and the law neither follows the line nor competes with other traffic.
bool is_settled(Phase phase);
// Whether losses in this phase show something about the rate: not while a queue of our own may overflow.
bool measures_loss(Phase phase);
LossByRate::Level level_of(Phase phase);

// A phase that a part of the law requests.
struct Plan {
  Phase phase = Phase::train;
  double gain = 1;                  // relative to the line's rate
  Duration time = Duration::max();  // maximum: until another event ends the phase
};

// Packets are stamped with the number of the current phase (`RateLaw::epoch()`).
class Experiments {
 public:
  struct Past {
    std::uint16_t number = 0;
    Phase phase = Phase::train;
    double rate = 0;  // bytes per second
  };

  explicit Experiments(std::uint16_t last = 0) : number_(last) {}

  // `line`: the line's rate, bytes per second.
  void begin(const Plan& plan, double line, TimePoint now);
  // Returns nullopt if the phase was too long ago.
  const Past* find(std::uint16_t number) const;

  Phase phase() const { return phase_; }
  bool in(Phase phase) const { return phase_ == phase; }
  std::uint16_t number() const { return number_; }
  TimePoint ends() const { return ends_; }
  void extend(TimePoint ends) { ends_ = ends; }
  double gain() const { return gain_; }
  void set_gain(double gain) { gain_ = gain; }

  static constexpr std::size_t kRemembered = 64;

 private:
  Phase phase_ = Phase::train;
  std::uint16_t number_;
  double gain_ = 1;
  TimePoint ends_{};
  std::array<Past, kRemembered> past_{};
};

}  // namespace longhaul::link::udp
