// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/reset_party.h"

#include <catch2/catch.hpp>

using namespace longhaul;
using namespace longhaul::flows;

TEST_CASE("each proxy names the parties of a flow alike") {
  FlowRecord near, far;
  far.far_side = true;
  const ResetParty at_near(near), at_far(far);
  CHECK(at_near.this_end() == ResetBy::client);
  CHECK(at_far.this_end() == ResetBy::server);
  CHECK(at_near.this_end() == at_far.other_end());
  CHECK(at_near.other_end() == at_far.this_end());
  CHECK(at_near.this_proxy() == at_far.other_proxy());
  CHECK(at_near.other_proxy() == at_far.this_proxy());
}

TEST_CASE("the code of a reset stream says who, and the first party stays") {
  FlowRecord record;
  ResetParty party(record);
  CHECK(party.of(link::ResetCode::connection_reset) == ResetBy::server);
  CHECK(party.of(link::ResetCode::no_reader) == ResetBy::server);
  CHECK(party.of(link::ResetCode::aborted) == ResetBy::far);
  CHECK(party.of(link::ResetCode::undecodable) == ResetBy::link);
  CHECK(party.of(link::ResetCode::session_lost) == ResetBy::link);
  party.note(party.of(link::ResetCode::aborted));
  party.note(ResetBy::client);
  CHECK(record.reset_by == ResetBy::far);
}
