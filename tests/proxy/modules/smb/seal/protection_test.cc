// SPDX-License-Identifier: Apache-2.0
// Which protection messages must have, and get, by their headers alone; leg_test.cc has the bytes.
#include "proxy/modules/smb/seal/protection.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/seal/legs.h"

namespace longhaul::smb::seal::legs {
namespace {

using To = Protection::To;

struct Protected : Protection {
  explicit Protected(To side, bool must_sign = false) : to(side) {
    agreement.must_sign = must_sign;
    REQUIRE(begin(kOurs));
  }
  bool begin(smb2::SessionId session) { return Protection::begin(session, agreement, keys_of(1), to); }
  To to;
  Agreement agreement{
      .dialect = smb2::Dialect::smb_3_1_1, .signing = Signing::aes_gmac, .cipher = Cipher::aes_128_gcm};
};

smb2::Header request(Command command, smb2::test::AnyId id, std::uint32_t arrival = 0,
                     smb2::TreeId tree = 7) {
  return {.command = command, .arrival = arrival, .message_id = id, .tree_id = tree, .session_id = kOurs};
}
smb2::Header answer(Command command, smb2::test::AnyId id, Status status = Status::success) {
  smb2::Header header = request(command, id);
  header.flags = smb2::header_flags::response;
  header.status = status;
  return header;
}

}  // namespace

TEST_CASE("seal: a request must have what its session demands, and a login nothing") {
  Protected client(To::client, true);
  CHECK(client.request_arrived(request(Command::read, 1), kOurs, Form::plain).error() == kUnprotected);
  CHECK(client.request_arrived(request(Command::read, 1), kOurs, Form::with_signature).has_value());
  CHECK(client.request_arrived(request(Command::session_setup, 2), kOurs, Form::plain).has_value());
  CHECK(client.request_arrived(request(Command::read, 3), kNobodys, Form::plain).has_value());
  CHECK(client.request_arrived(answer(Command::read, 3), kOurs, Form::with_signature).error() == kForged);
}

TEST_CASE("seal: an answer that is made here gets the form of its request, once") {
  Protected client(To::client);
  REQUIRE(client.request_arrived(request(Command::read, 1), kOurs, Form::encrypted).has_value());
  const auto interim = client.answer_sent(
      [] {
        smb2::Header header = answer(Command::read, 1, Status::pending);
        header.flags |= smb2::header_flags::async;
        return header;
      }(),
      kOurs, 0);
  CHECK(interim.form == Form::encrypted);
  CHECK(client.answer_sent(answer(Command::read, 1), kOurs, 0).form == Form::encrypted);
  CHECK(client.answer_sent(answer(Command::read, 1), kOurs, 0).form == Form::plain);
}

TEST_CASE("seal: only the answer to a request that was sent is taken, in its form or a stronger one") {
  Protected server(To::server);
  CHECK(server.answer_arrived(answer(Command::read, 1), kOurs, Form::encrypted).error() == kForged);
  const auto sent = server.request_sent(request(Command::read, 1, flags_of(Form::with_signature)), kOurs, 0);
  REQUIRE(sent.has_value());
  CHECK(sent->form == Form::with_signature);
  CHECK(sent->session == kOurs);
  CHECK(server.answer_arrived(answer(Command::read, 1), kOurs, Form::plain).error() == kUnprotected);
  CHECK(server.answer_arrived(answer(Command::read, 1), kNobodys, Form::encrypted).error() == kForged);
  CHECK(server.answer_arrived(answer(Command::read, 1), kOurs, Form::encrypted).has_value());
  CHECK_FALSE(server.awaits_answers());
}

TEST_CASE("seal: an answer that says that the session has expired may be weaker") {
  Protected server(To::server);
  REQUIRE(server.request_sent(request(Command::read, 1, flags_of(Form::encrypted)), kOurs, 0).has_value());
  CHECK(server.answer_arrived(answer(Command::read, 1, Status::network_session_expired), kOurs, Form::plain)
            .has_value());
}

TEST_CASE("seal: a request of ours has the form of the client's last one in its tree, else of its session") {
  Protected server(To::server);
  const auto form_of_own = [&](smb2::TreeId tree) {
    return server.request_sent(request(Command::read, 9, 0, tree), kOurs, 0)->form;
  };
  CHECK(form_of_own(1) == Form::plain);
  REQUIRE(server.request_sent(request(Command::read, 1, flags_of(Form::encrypted), 1), kOurs, 0).has_value());
  REQUIRE(server.request_sent(request(Command::read, 2, flags_of(Form::with_signature), 2), kOurs, 0)
              .has_value());
  CHECK(form_of_own(1) == Form::encrypted);
  CHECK(form_of_own(3) == Form::with_signature);
  REQUIRE(server.request_sent(request(Command::tree_disconnect, 3, flags_of(Form::encrypted), 1), kOurs, 0)
              .has_value());
  REQUIRE(server.request_sent(request(Command::read, 4, flags_of(Form::plain), 2), kOurs, 0).has_value());
  CHECK(form_of_own(1) == Form::plain);
}

TEST_CASE("seal: what names no session of ours is encrypted with the one whose transform it came in") {
  Protected server(To::server);
  const auto sent =
      server.request_sent(request(Command::read, 1, flags_of(Form::encrypted)), kNobodys, kOurs);
  REQUIRE(sent.has_value());
  CHECK(sent->session == kOurs);
  CHECK(server.request_sent(request(Command::read, 2, flags_of(Form::encrypted)), kOurs, kNobodys)->session ==
        kOurs);
}

TEST_CASE("seal: the answer to a LOGOFF ends its own session, whichever it names, and its trees") {
  Protected server(To::server);
  REQUIRE(server.begin(kAnother));
  REQUIRE(server.request_sent(request(Command::logoff, 1, flags_of(Form::plain)), kOurs, 0).has_value());
  REQUIRE(server.answer_arrived(answer(Command::logoff, 1), kAnother, Form::plain).has_value());
  CHECK_FALSE(server.has(kOurs));
  CHECK(server.has(kAnother));
}

TEST_CASE("seal: an answer that passes is awaited no more") {
  Protected server(To::server);
  REQUIRE(server.request_sent(request(Command::read, 1), kOurs, 0).has_value());
  server.answer_passes(request(Command::read, 1));
  CHECK(server.awaits_answers());
  server.answer_passes(answer(Command::read, 1));
  CHECK_FALSE(server.awaits_answers());
}

TEST_CASE("seal: there is a limit to the sessions of a leg, and new keys of a known one are not counted") {
  Protected client(To::client);
  for (smb2::SessionId session = 1000; session < 1000 + Protection::kMostSessions - 1; ++session)
    REQUIRE(client.begin(session));
  CHECK_FALSE(client.begin(7));
  CHECK(client.begin(kOurs));
  client.end(kOurs);
  CHECK(client.begin(7));
}

}  // namespace longhaul::smb::seal::legs
