// SPDX-License-Identifier: Apache-2.0
// The phases of a law that measures, and the rate at which the packets of each recent one were sent. What
// each phase does, and which one follows, is decided elsewhere.
#pragma once
#include <array>
#include <cstdint>

#include "proxy/link/udp/loss_by_rate.h"
#include "proxy/link/udp/rate_law.h"

namespace longhaul::link::udp {

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

const char* name_of(Phase phase);
// The line's rate is known, and no other traffic is competed with.
bool is_settled(Phase phase);
// What is lost in it says something about the rate: not while a queue of our own making may overflow.
bool measures_loss(Phase phase);
LossByRate::Level level_of(Phase phase);

// A phase that a part of the law wants to begin.
struct Plan {
  Phase phase = Phase::train;
  double gain = 1;                  // of the line's rate
  Duration time = Duration::max();  // maximum: until something else ends it
};

// Packets are stamped with the number of the present phase (`RateLaw::epoch()`).
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
  // No result if it was too long ago.
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
