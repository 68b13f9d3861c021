// SPDX-License-Identifier: Apache-2.0
// From round trips of packets of many sizes to what a link is: the smallest time of each size, a robust line
// through them, its slope and its start. Pure numbers; leaves sending to prober.h and the order of probes to
// sweep.h.
#pragma once
#include <optional>
#include <span>
#include <vector>

namespace longhaul::probe {

// Times are microseconds, sizes bytes of whole IP packets, errors half the width of a 95 % interval.
struct Point {
  double size = 0;   // of the probe
  double reply = 0;  // of the answer to it
  double us = 0;     // the smallest round trip of this size
};

struct XY {
  double x = 0;
  double y = 0;
};

struct Line {
  double start = 0;
  double slope = 0;
  double start_error = 0;
  double slope_error = 0;
};

// The median of the slopes between all pairs, each weighted by its distance (Theil, Sen): a third of the
// points may be anything. Nothing for less than three points, or if they all have one x.
std::optional<Line> robust_line(std::span<const XY> points);

enum class Model {
  separate,   // the answers' size stops growing: ways there and back are told apart
  constant,   // all answers have one size, so the way back is known by its delay alone: taken to be as fast
  symmetric,  // the answers grow with the probes: the way back is taken to be as fast
};

// The whole way to a hop and back.
struct RoundTrip {
  Model model = Model::separate;
  double there_us_per_byte = 0;
  double there_error = 0;
  double back_us_per_byte = 0;
  double back_error = 0;
  double delay_us = 0;  // there and back, of a packet without bytes
  double delay_error = 0;
  double reply = 0;  // where the model is `constant`: of every answer
};

enum class Assume { nothing, symmetric };
std::optional<RoundTrip> fit_round_trip(std::span<const Point> points, Assume assume = Assume::nothing);

struct Capacity {
  std::optional<double> bits_per_second;  // absent: too fast to be told from none
  double low = 0;                         // the 95 % interval
  std::optional<double> high;             // absent: no bound
};

// What lies between two hops, or between this host and the first (`before` absent).
struct LinkFit {
  Capacity there;
  std::optional<Capacity> back;  // only where it was measured
  double delay_us = 0;           // one way: half of both
  double delay_error = 0;
};
// A fit that took the whole way back to be as fast as the way there need assume it of the last link alone,
// where more is known of those before.
RoundTrip with_what_is_known(const std::optional<RoundTrip>& before, RoundTrip after);
LinkFit link_between(const std::optional<RoundTrip>& before, const RoundTrip& after);

// Sizes for one hop, ascending, from `least` to `most`. `knee` is where its answers stop growing: one third
// of the sizes lies below, two thirds above, which decide the capacity there.
std::vector<unsigned> plan_sizes(unsigned least, unsigned most, std::optional<unsigned> knee, unsigned count);

// Where answers stop growing, told from those to a small and a large probe; nothing if they do not grow, or
// never stop.
struct Sizes {
  unsigned probe = 0;
  unsigned reply = 0;
};
std::optional<unsigned> knee_of(Sizes small, Sizes large);

// The share that a count of losses stands for, with its exact binomial (Clopper-Pearson) interval.
struct Share {
  double value = 0;
  double low = 0;
  double high = 1;
};
Share share_of(unsigned lost, unsigned sent, double confidence = 0.95);

}  // namespace longhaul::probe
