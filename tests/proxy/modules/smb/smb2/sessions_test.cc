// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/sessions.h"

#include <catch2/catch.hpp>

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;

TEST_CASE("a session that nothing was said about may be touched") {
  Sessions sessions;
  CHECK(sessions.begun(7));
  CHECK_FALSE(sessions.untouchable(7));
  CHECK_FALSE(sessions.untouchable(8));
  CHECK_FALSE(sessions.any_untouchable());
  CHECK(sessions.may_be_answered());
  CHECK_FALSE(sessions.ids_are_fixed());
}

TEST_CASE("a signed request makes its own session untouchable, and fixes the ids of all") {
  Sessions sessions;
  sessions.came_signed(7);
  CHECK(sessions.untouchable(7));
  CHECK_FALSE(sessions.untouchable(8));
  CHECK(sessions.why_untouchable() == reasons::smb_signed);
  CHECK(sessions.ids_are_fixed());
  CHECK_FALSE(sessions.may_be_answered());
}

TEST_CASE("with the server's keys a signed request is one of a session that has ended") {
  Sessions sessions;
  sessions.seals();
  sessions.came_signed(7);
  CHECK(sessions.untouchable(7));
  CHECK(sessions.why_untouchable() == reasons::smb_session);
  CHECK_FALSE(sessions.ids_are_fixed());
  CHECK_FALSE(sessions.may_be_answered());
}

TEST_CASE("an encrypted frame fixes the ids even with the server's keys: its own is not known") {
  Sessions sessions;
  sessions.seals();
  sessions.came_encrypted();
  CHECK(sessions.untouchable(1));
  CHECK(sessions.why_untouchable() == reasons::smb_session);
  CHECK(sessions.ids_are_fixed());

  Sessions without_keys;
  without_keys.came_encrypted();
  CHECK(without_keys.why_untouchable() == reasons::smb_encrypted);
}

TEST_CASE("what the server requires of its sessions matters only without its keys") {
  Sessions requires_signing, requires_encryption;
  requires_signing.signing_required();
  CHECK(requires_signing.untouchable(7));
  CHECK(requires_signing.why_untouchable() == reasons::smb_signed);
  requires_encryption.encryption_required(7);
  CHECK(requires_encryption.untouchable(7));
  CHECK_FALSE(requires_encryption.untouchable(8));
  CHECK(requires_encryption.why_untouchable() == reasons::smb_encrypted);

  Sessions with_keys;
  with_keys.seals();
  with_keys.signing_required();
  with_keys.encryption_required(7);
  CHECK_FALSE(with_keys.untouchable(7));
  CHECK_FALSE(with_keys.any_untouchable());
}

TEST_CASE("keys that cannot be used end what they allowed") {
  Sessions sessions;
  sessions.seals();
  CHECK(sessions.is_sealed());
  sessions.cannot_open(reasons::smb_encrypted);
  CHECK_FALSE(sessions.is_sealed());
  CHECK(sessions.untouchable(1));
  CHECK(sessions.why_untouchable() == reasons::smb_encrypted);
}

TEST_CASE("an expired session may be answered, and is renewed when it is set up again") {
  Sessions sessions;
  sessions.expire(7);
  CHECK(sessions.expired(7));
  CHECK(sessions.untouchable(7));
  CHECK(sessions.may_be_answered());
  CHECK_FALSE(sessions.ids_are_fixed());
  CHECK(sessions.begun(7));
  CHECK_FALSE(sessions.expired(7));
  CHECK_FALSE(sessions.untouchable(7));
  CHECK(sessions.any_untouchable());  // what it was ends for the connection
}

TEST_CASE("a session bound to another connection stays untouchable when it is set up again") {
  Sessions sessions;
  sessions.bound_elsewhere(7);
  CHECK(sessions.begun(7));
  CHECK(sessions.untouchable(7));
  sessions.ended(7);
  CHECK_FALSE(sessions.untouchable(7));
}

TEST_CASE("the first reason why a connection is untouchable stays") {
  Sessions sessions;
  sessions.expire(7);
  sessions.came_signed(8);
  sessions.leave_alone(reasons::smb_not_understood);
  CHECK(sessions.why_untouchable() == reasons::smb_session);
  CHECK(sessions.ids_are_fixed());
}

TEST_CASE("an unreadable message alone leaves the ids free to be kept apart") {
  Sessions sessions;
  sessions.leave_alone(reasons::smb_not_understood);
  CHECK(sessions.untouchable(1));
  CHECK_FALSE(sessions.ids_are_fixed());
  CHECK_FALSE(sessions.may_be_answered());
}

TEST_CASE("with too many sessions all are untouchable") {
  Sessions sessions;
  for (SessionId n = 0; n < Sessions::kMostSessions; ++n) REQUIRE(sessions.begun(n));
  CHECK_FALSE(sessions.begun(Sessions::kMostSessions));
  CHECK_FALSE(sessions.any_untouchable());
  SECTION("one more is signed") { sessions.came_signed(Sessions::kMostSessions); }
  SECTION("one more has expired") { sessions.expire(Sessions::kMostSessions); }
  CHECK(sessions.untouchable(0));
  CHECK_FALSE(sessions.may_be_answered());
}
