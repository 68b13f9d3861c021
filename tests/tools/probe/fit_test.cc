// SPDX-License-Identifier: Apache-2.0
#include "tools/probe/fit.h"

#include <catch2/catch.hpp>
#include <random>

#include "tools/probe/sweep.h"

using namespace longhaul::probe;

namespace {

// What a path of links with these rates would measure. Rates in bits per microsecond, i.e. Mbit/s.
struct PathModel {
  std::vector<double> there;
  std::vector<double> back;
  double delay_us = 0;
  unsigned quote = 576;  // answers grow with probes up to here

  std::vector<Point> points(const std::vector<unsigned>& sizes, double noise_us = 0,
                            unsigned seed = 1) const {
    std::mt19937 dice{seed};
    std::exponential_distribution<double> late{1};
    std::vector<Point> found;
    for (const unsigned size : sizes) {
      const double reply = std::min<double>(size + 28, quote);
      double us = delay_us + noise_us * late(dice);
      for (const double rate : there) us += size * 8 / rate;
      for (const double rate : back) us += reply * 8 / rate;
      found.push_back({static_cast<double>(size), reply, us});
    }
    return found;
  }
};

const std::vector<unsigned> kSizes = plan_sizes(64, 1500, 548, 24);

}  // namespace

TEST_CASE("a line is fitted although a quarter of its points are far off") {
  std::vector<XY> points;
  for (int x = 0; x < 40; ++x) points.push_back({x * 10., 100 + x * 10 * 0.5 + (x % 4 == 3 ? 700 : 0)});
  const auto line = robust_line(points);
  REQUIRE(line);
  CHECK(line->slope == Approx(0.5).epsilon(0.001));
  CHECK(line->start == Approx(100).margin(1));
}

TEST_CASE("too few points, or points at one size only, give no line") {
  const std::vector<XY> two{{1, 1}, {2, 2}};
  CHECK_FALSE(robust_line(two));
  const std::vector<XY> one_place{{5, 1}, {5, 2}, {5, 3}, {5, 9}};
  CHECK_FALSE(robust_line(one_place));
  CHECK_FALSE(robust_line({}));
  CHECK_FALSE(fit_round_trip({}));
}

TEST_CASE("the stated error of a line covers the true value as often as it claims") {
  std::mt19937 dice{7};
  std::normal_distribution<double> noise{0, 5};
  int covered = 0;
  constexpr int kTrials = 400;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<XY> points;
    for (int x = 0; x < 16; ++x) points.push_back({x * 60., 40 + 0.8 * x * 60 + noise(dice)});
    const auto line = robust_line(points);
    if (std::abs(line->slope - 0.8) <= line->slope_error) ++covered;
  }
  CHECK(covered >= kTrials * 88 / 100);  // 95 % is said; the median of few rests is itself a rough measure
}

TEST_CASE("different speeds there and back are separated where the answers stop growing") {
  const PathModel model{{2}, {10}, 20'000};
  const auto fit = fit_round_trip(model.points(kSizes, 1));
  REQUIRE(fit);
  CHECK(fit->model == Model::separate);
  const LinkFit link = link_between(std::nullopt, *fit);
  CHECK(*link.there.bits_per_second == Approx(2e6).epsilon(0.01));
  REQUIRE(link.back);
  CHECK(*link.back->bits_per_second == Approx(10e6).epsilon(0.05));
  CHECK(link.delay_us == Approx(10'000).margin(20));
}

TEST_CASE("the speed of a later link is the difference of two fits, with both errors") {
  const PathModel before{{10}, {10}, 4'000}, after{{10, 2}, {10, 2}, 24'000};
  const auto first = fit_round_trip(before.points(kSizes, 3, 1)),
             second = fit_round_trip(after.points(kSizes, 3, 2));
  const LinkFit link = link_between(first, with_what_is_known(first, *second));
  CHECK(*link.there.bits_per_second == Approx(2e6).epsilon(0.05));
  CHECK(link.there.low < 2e6);
  CHECK(*link.there.high > 2e6);
  CHECK(link.delay_us == Approx(10'000).margin(50));
  CHECK(link.delay_error > 0);
}

TEST_CASE("a link too fast to be measured gets a lower bound and no figure") {
  const PathModel before{{2}, {2}, 1'000}, after{{2, 100'000}, {2, 100'000}, 1'000};
  const auto first = fit_round_trip(before.points(kSizes, 5, 1)),
             second = fit_round_trip(after.points(kSizes, 5, 2));
  const LinkFit link = link_between(first, *second);
  CHECK_FALSE(link.there.bits_per_second);
  CHECK_FALSE(link.there.high);
  CHECK(link.there.low > 0);
}

TEST_CASE("answers of constant size give the forward direction, and the delay minus an equally fast return") {
  const PathModel model{{4}, {4}, 10'000, 56};
  const auto fit = fit_round_trip(model.points(plan_sizes(64, 1500, std::nullopt, 24)));
  REQUIRE(fit);
  CHECK(fit->model == Model::constant);
  CHECK(8 / fit->there_us_per_byte == Approx(4));
  CHECK(fit->delay_us == Approx(10'000).margin(1));
}

TEST_CASE(
    "answers as large as the probes are halved, if more is known of earlier links only for the last one") {
  const PathModel near{{2}, {10}, 2'000};
  const PathModel end{{2, 4}, {10, 4}, 6'000, 65'535};  // an echo reply mirrors the whole probe
  const auto first = fit_round_trip(near.points(kSizes));
  const auto last = fit_round_trip(end.points(kSizes));
  REQUIRE(last->model == Model::symmetric);
  const LinkFit link = link_between(first, with_what_is_known(first, *last));
  CHECK(*link.there.bits_per_second == Approx(4e6).epsilon(0.01));
  CHECK_FALSE(link.back);
}

TEST_CASE("sizes are spread around the knee, most of them above it") {
  CHECK(kSizes.front() == 64);
  CHECK(kSizes.back() == 1500);
  CHECK(std::is_sorted(kSizes.begin(), kSizes.end()));
  const auto above = std::count_if(kSizes.begin(), kSizes.end(), [](unsigned size) { return size >= 548; });
  CHECK(above == 16);
  CHECK(plan_sizes(64, 1500, std::nullopt, 10).size() == 10);
  CHECK(plan_sizes(64, 64, 548, 10) == std::vector<unsigned>{64});
}

TEST_CASE("the knee is found from a small and a large probe") {
  CHECK(knee_of({64, 92}, {1500, 576}) == 548u);
  CHECK_FALSE(knee_of({64, 56}, {1500, 56}));    // eight bytes are quoted, always
  CHECK_FALSE(knee_of({64, 64}, {1500, 1500}));  // an echo
  CHECK_FALSE(knee_of({64, 92}, {1500, 1528}));  // everything is quoted
}

TEST_CASE("the interval of a share is the exact binomial one") {
  const Share none = share_of(0, 100), some = share_of(5, 100), all = share_of(10, 10);
  CHECK(none.low == 0);
  CHECK(none.high == Approx(0.0362).margin(0.0001));  // 1 - 0.025^(1/100)
  CHECK(some.value == Approx(0.05));
  CHECK(some.low == Approx(0.0164).margin(0.0002));
  CHECK(some.high == Approx(0.1128).margin(0.0002));
  CHECK(all.high == 1);
  CHECK(share_of(0, 0).high == 1);
}

namespace {

Hop hop(unsigned limit, unsigned sent, unsigned answered, double mbit) {
  Hop made{.limit = limit, .sent = sent, .answered = answered};
  made.address.emplace();
  made.points = PathModel{{mbit}, {mbit}, 1'000. * limit}.points(kSizes);
  made.fit = fit_round_trip(made.points);
  return made;
}

}  // namespace

TEST_CASE("answers missing from a single hop are not counted as losses of the path") {
  const auto links = links_of({hop(1, 1000, 300, 8), hop(2, 1000, 1000, 4), hop(3, 1000, 950, 2)});
  REQUIRE(links.size() == 3);
  CHECK(links[0].loss.value < 0.001);
  CHECK(links[1].loss.value < 0.001);
  CHECK(links[2].loss.value == Approx(0.05).margin(0.001));
  CHECK(links[2].loss.low < 0.05);
  CHECK(links[2].loss.high > 0.05);
}

TEST_CASE("a silent hop is skipped: its two links become one") {
  std::vector<Hop> hops{hop(1, 100, 100, 8), Hop{.limit = 2}, hop(3, 100, 100, 2)};
  const auto links = links_of(hops);
  REQUIRE(links.size() == 2);
  CHECK(links[1].from == 1);
  CHECK(links[1].to == 3);
}
