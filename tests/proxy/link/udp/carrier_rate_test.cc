// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/udp/carrier_rate.h"

#include <catch2/catch.hpp>

using namespace longhaul::link;
using namespace longhaul::link::udp;
using namespace std::chrono_literals;

namespace {
constexpr TimePoint kRatedFrom{1h};
}  // namespace

TEST_CASE("a configured rate is paced, and what an earlier carrier measured is remembered beside it") {
  CarrierRate rate({.rate_bits = 8'000'000, .path = PathMemory{.rate = 500'000, .min_rtt = 20ms}}, 1500,
                   kRatedFrom);
  CHECK(rate.bytes_per_second() == 1'000'000);
  CHECK(rate.view().law == RateView::Law::told);
  REQUIRE(rate.path_memory());
  CHECK(rate.path_memory()->rate == 500'000);
  CHECK_FALSE(rate.set(8'000'000, 0, std::nullopt, 1500, kRatedFrom));
  CHECK(rate.set(16'000'000, 0, 30ms, 1500, kRatedFrom));
  CHECK(rate.bytes_per_second() == 2'000'000);
  // Without a configured rate it begins where the earlier carrier was, within the limit.
  CHECK(rate.set(0, 1'600'000, 30ms, 1500, kRatedFrom));
  CHECK(rate.view().law == RateView::Law::measured);
  CHECK(rate.bytes_per_second() <= 200'000);
}

TEST_CASE("the delivery rate follows what arrives, and a pause of the source does not lower it") {
  CarrierRate rate({.rate_bits = 8'000'000}, 1500, kRatedFrom);
  CHECK(rate.delivered_per_second() == 0);
  RateSample sample{.now = kRatedFrom, .full_packet_bytes = 1500};
  const auto deliver = [&](std::uint64_t bytes, bool limited) {
    sample.delivery = DeliveryRate{.delivered_bytes = bytes,
                                   .dispatched_bytes = bytes,
                                   .interval = 100ms,
                                   .arrival_interval = 100ms,
                                   .application_limited = limited};
    rate.on_sample(sample, kRatedFrom);
    return rate.delivered_per_second();
  };
  CHECK(deliver(80'000, false) == 800'000);
  CHECK(deliver(8'000, true) == 800'000);
  CHECK(deliver(40'000, false) == 750'000);
  CHECK(deliver(83'000, true) > 750'000);
}
