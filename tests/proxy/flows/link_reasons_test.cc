// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/link_reasons.h"

#include <catch2/catch.hpp>

using namespace longhaul;
using namespace longhaul::flows;
using link::ConnectOutcome;
using link::LinkState;

TEST_CASE("only a link that is up carries new flows") {
  CHECK(reason_of(LinkState::up) == reasons::optimised);
  CHECK(reason_of(LinkState::never_up) == reasons::link_never_up);
  CHECK(reason_of(LinkState::silent) == reasons::link_silent);
  CHECK(reason_of(LinkState::down) == reasons::link_down);
}

TEST_CASE("the reason tells the far site's rules from the server's own refusal") {
  CHECK(reason_of(ConnectOutcome::not_allowed) == reasons::peer_refused);
  CHECK(reason_of(ConnectOutcome::client_not_allowed) == reasons::client_not_in_networks);
  CHECK(reason_of(ConnectOutcome::refused) == reasons::destination_refused);
  CHECK(reason_of(ConnectOutcome::timed_out) == reasons::destination_refused);
}
