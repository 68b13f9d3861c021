// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the sweep: medians for the lines, quadrature for the errors, nothing of packets.
#include "tools/probe/fit.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

namespace longhaul::probe {
namespace {

constexpr double kClockNoise = 0.5;  // microseconds; fewer cannot be seen, however well the points agree
constexpr double kMadToDeviation = 1.4826;   // of normal noise
constexpr double kMedianInefficiency = 1.1;  // how much wider than least squares this line spreads
constexpr std::size_t kLeastPlateau = 4;     // sizes with answers of one size, to fit the way there by
constexpr double kLeastReplySpread = 200;    // bytes, to fit the way back by

struct Weighted {
  double value;
  double weight;
};

double weighted_median(std::vector<Weighted> items) {
  std::sort(items.begin(), items.end(), [](const auto& a, const auto& b) { return a.value < b.value; });
  const double half = std::accumulate(items.begin(), items.end(), 0.0,
                                      [](double sum, const auto& item) { return sum + item.weight; }) /
                      2;
  double sum = 0;
  for (const Weighted& item : items)
    if ((sum += item.weight) >= half) return item.value;
  return items.back().value;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double quadrature(double a, double b) { return std::sqrt(a * a + b * b); }

// The points whose answers have the size most have, if they are enough to fit by.
std::vector<XY> plateau_of(std::span<const Point> points) {
  double largest = 0;
  for (const Point& point : points) largest = std::max(largest, point.reply);
  std::vector<XY> plateau;
  for (const Point& point : points)
    if (point.reply == largest) plateau.push_back({point.size, point.us});
  if (plateau.size() < kLeastPlateau) plateau.clear();
  return plateau;
}

double reply_spread(std::span<const Point> points) {
  const auto [least, most] = std::minmax_element(
      points.begin(), points.end(), [](const Point& a, const Point& b) { return a.reply < b.reply; });
  return most->reply - least->reply;
}

std::optional<RoundTrip> fit_symmetric(std::span<const Point> points) {
  std::vector<XY> both;
  for (const Point& point : points) both.push_back({point.size + point.reply, point.us});
  const auto line = robust_line(both);
  if (!line) return std::nullopt;
  return RoundTrip{.model = Model::symmetric,
                   .there_us_per_byte = line->slope,
                   .there_error = line->slope_error,
                   .back_us_per_byte = line->slope,
                   .back_error = line->slope_error,
                   .delay_us = line->start,
                   .delay_error = line->start_error};
}

// A difference of two slopes, each with its error.
Capacity capacity_of(double before, double before_error, double after, double after_error) {
  const double us_per_byte = after - before;
  const double error = quadrature(before_error, after_error);
  constexpr double kBitsPerByteMicros = 8e6;
  Capacity found;
  found.low = kBitsPerByteMicros / std::max(us_per_byte + error, 1e-6);
  if (us_per_byte > error) {  // else the slope is within its error of none at all
    found.bits_per_second = kBitsPerByteMicros / us_per_byte;
    found.high = kBitsPerByteMicros / (us_per_byte - error);
  }
  return found;
}

}  // namespace

std::optional<Line> robust_line(std::span<const XY> points) {
  if (points.size() < 3) return std::nullopt;
  std::vector<Weighted> slopes;
  for (std::size_t i = 0; i < points.size(); ++i)
    for (std::size_t k = i + 1; k < points.size(); ++k) {
      const double dx = points[k].x - points[i].x;
      if (dx != 0) slopes.push_back({(points[k].y - points[i].y) / dx, std::abs(dx)});
    }
  if (slopes.empty()) return std::nullopt;

  Line line;
  line.slope = weighted_median(std::move(slopes));
  std::vector<double> rests;
  for (const XY& point : points) rests.push_back(point.y - line.slope * point.x);
  line.start = median(rests);

  const auto count = static_cast<double>(points.size());
  double mean = 0;
  for (const XY& point : points) mean += point.x / count;
  double spread = 0;
  for (const XY& point : points) spread += (point.x - mean) * (point.x - mean);
  for (double& rest : rests) rest = std::abs(rest - line.start);
  const double degrees = count - 2;
  const double deviation =
      std::max(kClockNoise, kMadToDeviation * median(rests) * std::sqrt(count / degrees)) *
      kMedianInefficiency;
  const double t = boost::math::quantile(boost::math::students_t(degrees), 0.975);
  line.slope_error = t * deviation / std::sqrt(spread);
  line.start_error = t * deviation * std::sqrt(1 / count + mean * mean / spread);
  return line;
}

std::optional<RoundTrip> fit_round_trip(std::span<const Point> points, Assume assume) {
  if (points.empty()) return std::nullopt;
  const std::vector<XY> plateau = plateau_of(points);
  if (assume == Assume::symmetric || plateau.empty()) return fit_symmetric(points);
  const auto there = robust_line(plateau);
  if (!there) return std::nullopt;
  RoundTrip found{.there_us_per_byte = there->slope, .there_error = there->slope_error};

  if (reply_spread(points) < kLeastReplySpread) {  // nothing to see of the way back but its delay
    double reply = 0;
    for (const Point& point : points) reply = std::max(reply, point.reply);
    found.model = Model::constant;
    found.back_us_per_byte = there->slope;
    found.back_error = there->slope_error;
    found.reply = reply;
    found.delay_us = there->start - there->slope * reply;
    found.delay_error = there->start_error + there->slope_error * reply;
    return found;
  }
  std::vector<XY> rest;
  for (const Point& point : points) rest.push_back({point.reply, point.us - there->slope * point.size});
  const auto back = robust_line(rest);
  if (!back) return std::nullopt;
  found.back_us_per_byte = back->slope;
  // While answers grow, only the sum of both slopes shows: an error of one is the opposite error of the
  // other.
  found.back_error = quadrature(back->slope_error, there->slope_error);
  found.delay_us = back->start;
  found.delay_error = back->start_error;
  return found;
}

RoundTrip with_what_is_known(const std::optional<RoundTrip>& before, RoundTrip after) {
  if (!before || after.model == Model::separate) return after;
  if (after.model == Model::symmetric) {
    const double last = (after.there_us_per_byte + after.back_us_per_byte - before->there_us_per_byte -
                         before->back_us_per_byte) /
                        2;
    after.there_us_per_byte = before->there_us_per_byte + last;
    after.back_us_per_byte = before->back_us_per_byte + last;
  } else {
    const double back = before->back_us_per_byte + after.there_us_per_byte - before->there_us_per_byte;
    after.delay_us += (after.back_us_per_byte - back) * after.reply;
    after.back_us_per_byte = back;
    after.back_error = quadrature(before->back_error, after.there_error);
  }
  return after;
}

LinkFit link_between(const std::optional<RoundTrip>& before, const RoundTrip& after) {
  const RoundTrip start = before.value_or(RoundTrip{});
  LinkFit link;
  link.there =
      capacity_of(start.there_us_per_byte, start.there_error, after.there_us_per_byte, after.there_error);
  if (after.model == Model::separate && (!before || before->model == Model::separate))
    link.back =
        capacity_of(start.back_us_per_byte, start.back_error, after.back_us_per_byte, after.back_error);
  link.delay_us = (after.delay_us - start.delay_us) / 2;
  link.delay_error = quadrature(after.delay_error, start.delay_error) / 2;
  return link;
}

std::vector<unsigned> plan_sizes(unsigned least, unsigned most, std::optional<unsigned> knee,
                                 unsigned count) {
  std::vector<unsigned> sizes;
  const auto spread = [&](unsigned from, unsigned to, unsigned number) {
    for (unsigned i = 0; i < number; ++i)
      sizes.push_back(number == 1 ? to : from + (to - from) * i / (number - 1));
  };
  if (least >= most) return {most};
  if (knee && *knee > least + 16 && *knee + 32 < most) {
    const unsigned below = std::max(2u, count / 3);
    spread(least, *knee - 8, below);
    spread(*knee, most, std::max(static_cast<unsigned>(kLeastPlateau), count - std::min(count, below)));
  } else {
    spread(least, most, std::max(3u, count));
  }
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::optional<unsigned> knee_of(Sizes small, Sizes large) {
  if (large.reply < small.reply + 16 || large.probe <= small.probe) return std::nullopt;
  const unsigned overhead = small.reply > small.probe ? small.reply - small.probe : 0;
  if (large.reply >= large.probe + overhead) return std::nullopt;
  return large.reply - overhead;
}

Share share_of(unsigned lost, unsigned sent, double confidence) {
  if (sent == 0) return {};
  using Binomial = boost::math::binomial_distribution<>;
  const double tail = (1 - confidence) / 2;
  return {static_cast<double>(lost) / sent, lost == 0 ? 0 : Binomial::find_lower_bound_on_p(sent, lost, tail),
          lost == sent ? 1 : Binomial::find_upper_bound_on_p(sent, lost, tail)};
}

}  // namespace longhaul::probe
