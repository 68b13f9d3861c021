// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/session_carriers.h"

#include <catch2/catch.hpp>

using namespace longhaul::link;

TEST_CASE("if the preferred carrier goes, the newest that may send is preferred") {
  SessionCarriers carriers;
  CHECK(carriers.preferred() == 0);
  carriers.add(1, true);
  carriers.add(2, true);
  carriers.add(3, false);
  carriers.prefer(*carriers.find(1));
  carriers.remove(2);
  CHECK(carriers.preferred() == 1);
  carriers.add(4, true);
  carriers.add(5, false);
  carriers.remove(1);
  CHECK(carriers.preferred() == 4);
  CHECK(carriers.ids() == std::vector<CarrierId>{3, 4, 5});
  carriers.remove(4);
  CHECK(carriers.preferred() == 0);
  // A carrier that was preferred once may send.
  carriers.prefer(*carriers.find(3));
  carriers.prefer(*carriers.find(5));
  carriers.remove(5);
  CHECK(carriers.preferred() == 3);
  CHECK_FALSE(carriers.find(5));
}
