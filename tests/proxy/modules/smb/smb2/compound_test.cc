// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/compound.h"

#include <catch2/catch.hpp>

#include "proxy/modules/smb/smb2/conversation.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace longhaul::smb::smb2::test;

TEST_CASE("an element of a compound can be sent alone, with the ids that it refers to") {
  const Header related = request_header(
      Command::close, 2, {.session = ~SessionId{0}, .tree = ~TreeId{0}, .flags = header_flags::related});
  const Message both = compound({
      {request_header(Command::echo, 1), empty_body()},
      {related, close_request_body(kPreviousFile)},
  });
  Pending pending;
  pending.session = 5;
  pending.tree = 6;
  pending.file = {7, 8};
  const auto message = alone(both.elements[1], pending);
  REQUIRE(message);
  CHECK(message->single());
  CHECK(message->header().message_id == 2_message);
  CHECK(message->header().session_id == 5);
  CHECK(message->header().tree_id == 6);
  CHECK_FALSE(message->header().is_related());
  CHECK(message->header().next_command == 0);
  CHECK(named_file(message->first()) == FileId{7, 8});

  const Message cut = request(Command::close, 3, empty_body());
  CHECK_FALSE(alone(cut.first(), pending));
}
