// SPDX-License-Identifier: Apache-2.0
// Which connections and sessions pass unchanged from some point on, and what they are still known for.
#include <catch2/catch.hpp>

#include "proxy/modules/smb/smb2/connection.h"
#include "proxy/modules/smb/smb2/conversation.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace longhaul::smb::smb2::test;

namespace {

FileId file_of_state(std::uint64_t number) { return {number, number << 32}; }

}  // namespace

TEST_CASE("a session that requires signing is not changed") {
  Connection connection;
  connection.on_request(request(Command::negotiate, 0, negotiate_request_body(), {.session = 0, .tree = 0}));
  connection.on_response(
      answer(Command::negotiate, 0,
             negotiate_answer_body(Dialect::smb_3_0, 0,
                                   security_mode::signing_enabled | security_mode::signing_required)));
  CHECK(connection.sessions().untouchable(kSession));
  CHECK(connection.sessions().why_untouchable() == smb::reasons::smb_signed);
}

TEST_CASE("a session passes unchanged from its first signed ordinary request") {
  const Of is_signed{.flags = header_flags::is_signed};
  Connection connection;
  connect(connection);
  connection.on_request(request(Command::tree_connect, 3, tree_connect_request_body(), is_signed));
  connection.on_request(
      request(Command::ioctl, 4, ioctl_request_body(fsctl::validate_negotiate_info), is_signed));
  connection.on_request(request(Command::session_setup, 5, session_setup_request_body(), is_signed));
  CHECK_FALSE(connection.sessions().untouchable(kSession));
  CHECK_FALSE(connection.sessions().any_untouchable());
  connection.on_request(request(Command::echo, 6, empty_body(), is_signed));
  CHECK(connection.sessions().untouchable(kSession));
  CHECK_FALSE(connection.sessions().untouchable(kSession + 1));
  CHECK(connection.sessions().why_untouchable() == smb::reasons::smb_signed);
}

TEST_CASE("encrypted, bound and expired sessions pass unchanged") {
  {
    Connection connection;
    connection.on_request(request(Command::session_setup, 1, session_setup_request_body(), {.session = 0}));
    connection.on_response(
        answer(Command::session_setup, 1, session_setup_answer_body(session_flags::encrypt_data)));
    CHECK(connection.sessions().untouchable(kSession));
  }
  {
    Connection connection;
    connection.on_request(request(Command::session_setup, 1, session_setup_request_body(true)));
    CHECK(connection.sessions().untouchable(kSession));
    CHECK(connection.sessions().why_untouchable() == smb::reasons::smb_multichannel);
  }
  {
    Connection connection;
    connect(connection);
    open_file(connection, 3, "file", {.file = file_of_state(1)});
    connection.on_request(request(Command::read, 4, read_request_body(file_of_state(1), 0, 10)));
    connection.on_response(error(Command::read, 4, Status::network_session_expired));
    CHECK(connection.sessions().untouchable(kSession));
    connection.on_request(request(Command::session_setup, 5, session_setup_request_body()));
    connection.on_response(answer(Command::session_setup, 5, session_setup_answer_body()));
    CHECK_FALSE(connection.sessions().untouchable(kSession));
  }
}

TEST_CASE("after a session is set up again, its earlier opens are no longer answered locally") {
  Connection connection;
  connect(connection);
  const Open& open =
      open_file(connection, 3, "file", {.file = file_of_state(1), .oplock = OplockLevel::batch});
  CHECK(open.caching == (lease_state::read | lease_state::write | lease_state::handle));
  const Changes changes =
      connection.on_request(request(Command::session_setup, 4, session_setup_request_body()));
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].kind == Change::Kind::voided);
  CHECK(may_be_same_file(*changes[0].file, *open.group));
  CHECK(open.caching == lease_state::none);
  CHECK_FALSE(connection.sessions().untouchable(kSession));
}

TEST_CASE("a frame that is encrypted or makes no sense ends what is known of the connection") {
  Connection encrypted, nonsense;
  connect(encrypted);
  connect(nonsense);
  const Slice frame = request(Command::echo, 3, empty_body()).frame.bytes;
  CHECK(encrypted.parse({FrameKind::smb2, frame}));
  CHECK_FALSE(encrypted.sessions().any_untouchable());
  CHECK_FALSE(encrypted.parse({FrameKind::smb2_transform, frame}));
  CHECK(encrypted.sessions().why_untouchable() == smb::reasons::smb_encrypted);
  CHECK_FALSE(nonsense.parse({FrameKind::smb2, frame.sub(0, 20)}));
  CHECK(nonsense.sessions().why_untouchable() == smb::reasons::smb_not_understood);
}

TEST_CASE("where the keys are known, what arrives protected is of a session that has ended") {
  Connection is_signed, encrypted;
  for (Connection* const connection : {&is_signed, &encrypted}) {
    connection->sessions().seals();
    connect(*connection);
    connection->on_request(request(Command::logoff, 3, empty_body()));
    connection->on_response(answer(Command::logoff, 3, empty_body()));
    CHECK_FALSE(connection->sessions().any_untouchable());
  }
  is_signed.on_request(request(Command::echo, 4, empty_body(), {.flags = header_flags::is_signed}));
  CHECK_FALSE(encrypted.parse({FrameKind::smb2_transform, request(Command::echo, 4, empty_body()).frame.bytes}));
  for (const Connection* const connection : {&is_signed, &encrypted}) {
    CHECK(connection->sessions().why_untouchable() == smb::reasons::smb_session);
    CHECK(connection->sessions().untouchable(kSession));
    CHECK_FALSE(connection->sessions().may_be_answered());
  }
  // Nobody knows the id in a transform. With a signature it is known, and what is owed to the server can be sent.
  CHECK(encrypted.sessions().ids_are_fixed());
  CHECK_FALSE(is_signed.sessions().ids_are_fixed());
  CHECK_FALSE(is_signed.sessions().untouchable(kSession + 1));
}
