// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/io/state_history.h"

#include <catch2/catch.hpp>

#include "../start.h"

using namespace longhaul::link;
using namespace std::chrono_literals;

TEST_CASE("a link without a session is down only if it was up once") {
  StateHistory states(kStart);
  CHECK(states.without_session() == LinkState::never_up);
  states.on_connected();
  CHECK(states.without_session() == LinkState::down);
}

TEST_CASE("a state counts from its beginning, and the end of up is told once") {
  StateHistory states(kStart);
  CHECK_FALSE(states.note(LinkState::never_up, kStart + 1s).changed);
  CHECK(states.since() == kStart);
  const auto up = states.note(LinkState::up, kStart + 2s);
  CHECK(up.changed);
  CHECK_FALSE(up.was_up);
  CHECK_FALSE(states.note(LinkState::up, kStart + 3s).changed);
  CHECK(states.since() == kStart + 2s);
  CHECK(states.note(LinkState::silent, kStart + 4s).was_up);
  CHECK_FALSE(states.note(LinkState::down, kStart + 5s).was_up);
  CHECK(states.since() == kStart + 5s);
}
