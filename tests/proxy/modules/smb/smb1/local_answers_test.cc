// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/local_answers.h"

#include "proxy/modules/smb/smb1/conversation.h"

namespace longhaul::smb::smb1::testing {
namespace {

TEST_CASE("SMB1: what is configured may be answered locally while both sides can be parsed") {
  Conversation talk;
  LocalAnswers local(talk.connection);
  CHECK(local.may(&Features::read_ahead));
  CHECK_FALSE(local.may(&Features::write_behind_cached));
  SECTION("not what is switched off") {
    Surroundings surroundings;
    surroundings.features.read_ahead = false;
    surroundings.features.write_behind_cached = true;
    local.on_surroundings(surroundings);
    CHECK_FALSE(local.may(&Features::read_ahead));
    CHECK(local.may(&Features::write_behind_cached));
  }
  SECTION("nothing when the client is over") {
    local.client_is_over();
    CHECK(local.is_client_over());
    CHECK_FALSE(local.may(&Features::read_ahead));
  }
  SECTION("nothing when the server is over") {
    local.server_is_over();
    CHECK_FALSE(local.may(&Features::read_ahead));
  }
  SECTION("nothing in a connection that must be left alone") {
    talk.connection.negotiated().cannot_open(reasons::smb_signed);
    CHECK_FALSE(local.may(&Features::read_ahead));
  }
}

TEST_CASE("SMB1: nothing is answered locally before the dialect is agreed") {
  const Connection connection;
  CHECK_FALSE(LocalAnswers(connection).may(&Features::read_ahead));
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
