// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/session_carriers.h"

#include <catch2/catch.hpp>

using namespace longhaul::link;

TEST_CASE("if the preferred carrier goes, the newest that may send is preferred") {
  SessionCarriers carriers;
  CHECK(carriers.preferred() == kNoCarrier);
  carriers.add(CarrierId(1), true);
  carriers.add(CarrierId(2), true);
  carriers.add(CarrierId(3), false);
  carriers.prefer(*carriers.find(CarrierId(1)));
  carriers.remove(CarrierId(2));
  CHECK(carriers.preferred() == CarrierId(1));
  carriers.add(CarrierId(4), true);
  carriers.add(CarrierId(5), false);
  carriers.remove(CarrierId(1));
  CHECK(carriers.preferred() == CarrierId(4));
  CHECK(carriers.ids() == std::vector{CarrierId(3), CarrierId(4), CarrierId(5)});
  carriers.remove(CarrierId(4));
  CHECK(carriers.preferred() == kNoCarrier);
  // A carrier that was preferred once may send.
  carriers.prefer(*carriers.find(CarrierId(3)));
  carriers.prefer(*carriers.find(CarrierId(5)));
  carriers.remove(CarrierId(5));
  CHECK(carriers.preferred() == CarrierId(3));
  CHECK_FALSE(carriers.find(CarrierId(5)));
}

TEST_CASE("a helper is one only beside a preferred carrier that is another") {
  SessionCarriers carriers;
  carriers.add(CarrierId(1), true);
  carriers.add(CarrierId(2), false);
  carriers.find(CarrierId(2))->helps_above = 1000;
  CHECK_FALSE(carriers.helps_above(CarrierId(2)));
  carriers.prefer(*carriers.find(CarrierId(1)));
  CHECK(carriers.helps_above(CarrierId(2)) == std::optional<std::size_t>(1000));
  CHECK_FALSE(carriers.helps_above(CarrierId(1)));
  CHECK_FALSE(carriers.helps_above(CarrierId(3)));
  carriers.prefer(*carriers.find(CarrierId(2)));
  CHECK_FALSE(carriers.helps_above(CarrierId(2)));
}

TEST_CASE("routes name all helpers: others no longer help, and those that are gone never do") {
  SessionCarriers carriers;
  for (const unsigned id : {1, 2, 3}) carriers.add(CarrierId(id), true);
  carriers.prefer(*carriers.find(CarrierId(1)));
  carriers.route({.helpers = {{CarrierId(2), 1000}, {CarrierId(4), 1}}});
  CHECK(carriers.helps_above(CarrierId(2)) == std::optional<std::size_t>(1000));
  CHECK_FALSE(carriers.helps_above(CarrierId(4)));
  carriers.route({.helpers = {{CarrierId(3), 2000}}});
  CHECK_FALSE(carriers.helps_above(CarrierId(2)));
  CHECK(carriers.helps_above(CarrierId(3)) == std::optional<std::size_t>(2000));
}

TEST_CASE("streams of a policy go on its carrier while that exists, and else on the preferred one") {
  using longhaul::config::PathPolicy;
  SessionCarriers carriers;
  carriers.add(CarrierId(1), true);
  carriers.add(CarrierId(2), false);
  PathRoutes routes{.usual = PathPolicy::best};
  routes.carriers = {CarrierId(1), CarrierId(1), CarrierId(2)};
  carriers.route(routes);
  CHECK(carriers.carrier_of(PathPolicy::failover) == kNoCarrier);  // none sends yet
  carriers.prefer(*carriers.find(CarrierId(1)));
  CHECK(carriers.carrier_of(PathPolicy::failover) == CarrierId(2));
  CHECK(carriers.carrier_of(PathPolicy::best) == CarrierId(1));
  CHECK(carriers.lanes_of(CarrierId(1)).holds(static_cast<std::size_t>(PathPolicy::sum)));
  CHECK_FALSE(carriers.lanes_of(CarrierId(1)).holds(static_cast<std::size_t>(PathPolicy::failover)));
  CHECK(carriers.policy_for(longhaul::config::PathUse::automatic) == PathPolicy::best);
  CHECK(carriers.policy_for(longhaul::config::PathUse::failover) == PathPolicy::failover);
  carriers.remove(CarrierId(2));
  CHECK(carriers.carrier_of(PathPolicy::failover) == CarrierId(1));
  carriers.route(routes);  // with a carrier that is gone
  CHECK(carriers.carrier_of(PathPolicy::failover) == CarrierId(1));
}
