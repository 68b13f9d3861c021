// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/own_opens.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/smb2/conversation.h"

namespace longhaul::smb::smb2::test {
namespace {

struct OwnOpened {
  OwnOpened() {
    connect(connection);
    leg.granted(answer(Command::negotiate, 0, negotiate_answer_body(Dialect::smb_3_0_2), Status::success,
                       {.charge = 100}));
  }
  static Slice create_frame(const RequestHead& head) {
    static const std::string name = utf16("f");
    CreateRequest create;
    create.oplock = OplockLevel::batch;
    create.desired_access = access::read_data;
    create.name = as_bytes(name);
    return build_create_request(head, create);
  }
  // By what went to the server since the last call.
  std::optional<Message> sent() {
    while (auto output = out.poll())
      if (auto* bytes = std::get_if<modules::ToLan>(&*output)) splitter.push(bytes->bytes);
    auto frame = splitter.next().value();
    return frame ? std::optional(parse_message(*frame).value()) : std::nullopt;
  }
  Outputs out;
  Connection connection;
  FarOplocks oplocks{connection};
  modules::Counters counters;
  ServerLeg leg{out, connection, oplocks, counters};
  std::vector<MessageId> answers;
  OwnOpens opens{connection, leg,
                 [this](TimePoint now, const Message& message, const Connection::Outcome& outcome,
                        const FarSide::OpenReply& reply) {
                   answers.push_back(message.header().message_id);
                   reply(now, message, outcome);
                 }};
  FrameSplitter splitter{Framing::direct_tcp};
};

}  // namespace

TEST_CASE("an open of our own is tracked like a client's, under a number that no client has") {
  OwnOpened own;
  const Open* opened = nullptr;
  const auto number = own.opens.create(kSession, kTree, OwnOpened::create_frame,
                                       [&](TimePoint, const Message&, const Connection::Outcome& outcome) {
                                         for (const Change& change : outcome.changes) opened = change.open;
                                       });
  REQUIRE(number);
  const auto sent = own.sent();
  REQUIRE(sent);
  CHECK(sent->header().message_id != *number);
  REQUIRE(own.connection.pending(*number));
  CHECK(own.connection.pending(*number)->opening);
  CHECK(own.leg.answers_own({}, answer(Command::create, sent->header().message_id,
                                       create_answer_body({.file = {1, 2}, .oplock = OplockLevel::batch}))));
  CHECK(own.answers == std::vector{*number});
  REQUIRE(opened);
  CHECK(own.connection.open(FileId{1, 2}) == opened);

  bool is_closed = false;
  REQUIRE(own.opens.close(
      kSession, kTree,
      [](const RequestHead& head) {
        return build_close_request(head, {.file = {1, 2}});
      },
      [&](TimePoint, const Message&, const Connection::Outcome& outcome) {
        is_closed = outcome.changes.size() == 1 && outcome.changes[0].kind == Change::Kind::closed;
      }));
  own.leg.answers_own({}, answer(Command::close, own.sent()->header().message_id, close_answer_body()));
  CHECK(is_closed);
  CHECK_FALSE(own.connection.open(FileId{1, 2}));
}

TEST_CASE("an open of our own that cannot be sent is not tracked") {
  OwnOpened own;
  own.leg.set_opaque();
  const std::size_t pending = own.connection.pending_count();
  CHECK_FALSE(own.opens.create(kSession, kTree, OwnOpened::create_frame, {}));
  CHECK(own.connection.pending_count() == pending);
  CHECK_FALSE(own.sent());
}

}  // namespace longhaul::smb::smb2::test
