// SPDX-License-Identifier: Apache-2.0
// Which numbers the client's requests and the module's own get at the server.
#include "proxy/modules/smb/smb2/server_leg.h"

#include <catch2/catch.hpp>

#include "proxy/modules/smb/smb2/far.h"
#include "tests/proxy/modules/smb/smb2/pair.h"

namespace longhaul::smb::smb2::test {
namespace {

// The far half alone, after a login, with a file that it reads ahead.
struct FarAlone {
  FarAlone() {
    far.seals();
    far.on_surroundings(now, Pair::usual());
    exchange(request(Command::negotiate, 0, negotiate_request_body(), {.session = 0, .tree = 0}),
             answer(Command::negotiate, 0, negotiate_answer_body(Dialect::smb_2_1), Status::success,
                    {.charge = 30}));
    far.from_twin(now, Allowance{1 << 24}, {});
    exchange(request(Command::session_setup, 1, session_setup_request_body(), {.session = 0, .tree = 0}),
             answer(Command::session_setup, 1, session_setup_answer_body()));
    exchange(request(Command::tree_connect, 2, tree_connect_request_body(), {.tree = 0}),
             answer(Command::tree_connect, 2, tree_connect_answer_body()));
    exchange(
        create_request(3, "file", {.oplock = OplockLevel::batch}),
        answer(Command::create, 3,
               create_answer_body({.file = {1, 2}, .oplock = OplockLevel::batch, .end_of_file = 1 << 20})));
    for (const Message& message : sent())
      if (message.header().command == Command::read) own.push_back(message.header().message_id);
    REQUIRE_FALSE(own.empty());
  }
  void exchange(const Message& asked, const Message& answered) {
    far.frame_from_stream(now, asked.frame);
    far.frame_from_lan(now, answered.frame);
  }
  // By what went to the server since the last call.
  std::vector<Message> sent() {
    while (auto output = out.poll()) {
      if (auto* bytes = std::get_if<modules::ToLan>(&*output)) splitter.push(bytes->bytes);
      aborted = aborted || std::holds_alternative<modules::Abort>(*output);
    }
    std::vector<Message> messages;
    while (auto frame = splitter.next().value()) messages.push_back(parse_message(*frame).value());
    return messages;
  }
  TimePoint now{};
  Outputs out;
  Far far{out};
  FrameSplitter splitter{Framing::direct_tcp};
  std::vector<MessageId> own;
  bool aborted = false;
};

// The way to the server alone, after a NEGOTIATE.
struct LegAlone {
  explicit LegAlone(std::uint16_t credits = 40, Dialect dialect = Dialect::smb_2_1) {
    connect(connection, dialect);
    leg.send(request(Command::negotiate, 0, negotiate_request_body(), {.session = 0, .tree = 0}));
    arrive(
        answer(Command::negotiate, 0, negotiate_answer_body(dialect), Status::success, {.charge = credits}));
    CHECK(sent().size() == 1);
  }
  Message arrive(const Message& message) {
    leg.granted(message);
    return leg.in_clients_numbers(message);
  }
  std::vector<Message> sent() {
    while (auto output = out.poll())
      if (auto* bytes = std::get_if<modules::ToLan>(&*output)) splitter.push(bytes->bytes);
    std::vector<Message> messages;
    while (auto frame = splitter.next().value()) messages.push_back(parse_message(*frame).value());
    return messages;
  }
  static Message flush(test::AnyId id) { return request(Command::flush, id, flush_request_body({1, 2})); }
  static Message cancel(test::AnyId id) { return request(Command::cancel, id, empty_body()); }
  bool inject() {
    return leg.inject(
        kSession, kTree, 1,
        [](const RequestHead& head) {
          return build_close_request(head, {.file = {1, 2}});
        },
        [this](TimePoint, const Frame&, const Element&) { ++replies; });
  }
  bool inject_awaited() {
    return leg.inject_awaited(
        kSession, kTree,
        [](const RequestHead& head) {
          return build_close_request(head, {.file = {1, 2}});
        },
        [this](TimePoint, const Frame&, const Element&) { ++replies; });
  }
  Outputs out;
  Connection connection;
  FarOplocks oplocks{connection};
  modules::Counters counters;
  ServerLeg leg{out, connection, oplocks, counters};
  FrameSplitter splitter{Framing::direct_tcp};
  int replies = 0;
};

Message login(test::AnyId id, std::uint32_t marks) {
  return request(Command::session_setup, id, session_setup_request_body(), {.flags = marks});
}

}  // namespace

TEST_CASE("SMB2: logging in again, in a session with keys, goes on where the module has used its number") {
  FarAlone alone;
  const MessageId id = alone.own.front();
  alone.far.frame_from_stream(alone.now, login(id, kArrivalFlags).frame);
  const auto sent = alone.sent();
  REQUIRE(sent.size() == 1);
  CHECK_FALSE(alone.aborted);
  CHECK(sent[0].header().command == Command::session_setup);
  CHECK(sent[0].header().message_id != id);
  CHECK(std::ranges::find(alone.own, sent[0].header().message_id) == alone.own.end());
  // And the client gets its answer.
  alone.far.frame_from_lan(
      alone.now,
      answer(Command::session_setup, sent[0].header().message_id, session_setup_answer_body()).frame);
  bool is_answered = false;
  while (auto output = alone.out.poll())
    if (auto* frame = std::get_if<modules::ToStream>(&*output))
      is_answered |= message_of(frame->bytes).header().message_id == id;
  CHECK(is_answered);
}

TEST_CASE("SMB2: a first login, which both sides hash, cannot get another number") {
  FarAlone alone;
  alone.far.frame_from_stream(alone.now, login(alone.own.front(), 0).frame);
  CHECK(alone.sent().empty());
  CHECK(alone.aborted);
}

TEST_CASE(
    "SMB2: a request of our own gets an id that the client used without the server, else one at the top") {
  LegAlone alone;
  alone.leg.bank(1_message, 1);
  REQUIRE(alone.inject());
  REQUIRE(alone.inject());
  const auto sent = alone.sent();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].header().message_id == 1_message);
  CHECK(sent[1].header().message_id == 40_message);
  CHECK(alone.counters.injected == 2);
  CHECK(alone.leg.has_own());
  for (const Message& each : sent)
    CHECK(alone.leg.answers_own({}, answer(Command::close, each.header().message_id, close_answer_body())));
  CHECK(alone.replies == 2);
  CHECK_FALSE(alone.leg.has_own());
  CHECK_FALSE(alone.leg.answers_own({}, answer(Command::close, 40, close_answer_body())));
}

TEST_CASE("SMB2: the answer to a request that went under another id has the client's") {
  LegAlone alone;
  REQUIRE(alone.inject());
  const MessageId used = alone.sent().at(0).header().message_id;
  alone.leg.send(LegAlone::flush(used));
  const auto sent = alone.sent();
  REQUIRE(sent.size() == 1);
  const MessageId id = sent[0].header().message_id;
  CHECK(id != used);
  // A CANCEL names its target by the same id.
  alone.leg.send(LegAlone::cancel(used));
  CHECK(alone.sent().at(0).header().message_id == id);
  CHECK(alone.arrive(answer(Command::flush, id, empty_body())).header().message_id == used);
  alone.leg.send(LegAlone::cancel(used));
  CHECK(alone.sent().empty());  // its target is done
}

TEST_CASE("SMB2: requests without ids wait in order, their CANCELs behind them") {
  LegAlone alone(2);  // ids up to 2
  alone.leg.bank(1_message, 1);
  alone.leg.send(LegAlone::flush(2));
  alone.leg.send(LegAlone::flush(3));  // takes the id that was banked
  CHECK(alone.sent().size() == 2);
  alone.leg.send(LegAlone::flush(4));
  alone.leg.send(LegAlone::flush(5));
  alone.leg.send(LegAlone::cancel(4));
  CHECK(alone.sent().empty());
  CHECK(alone.leg.has_waiting());
  CHECK(alone.leg.queued_bytes() > 0);
  CHECK_FALSE(alone.leg.can_inject(1));
  CHECK_FALSE(alone.leg.send_waiting());
  alone.arrive(answer(Command::flush, 2, empty_body(), Status::success, {.charge = 8}));
  CHECK(alone.leg.send_waiting());
  const auto sent = alone.sent();
  REQUIRE(sent.size() == 3);
  CHECK(sent[0].header().message_id == 4_message);
  CHECK(sent[1].header().message_id == 5_message);
  CHECK(sent[2].header().command == Command::cancel);
  CHECK(alone.leg.queued_bytes() == 0);
}

TEST_CASE("SMB2: a request of more ids than our own have left in a row goes after an ECHO") {
  LegAlone alone(8);  // ids up to 8
  const auto answer_own = [&](MessageId id, Command command, std::uint16_t credits) {
    const Message answered = answer(command, id, empty_body(), Status::success, {.charge = credits});
    alone.leg.granted(answered);
    CHECK(alone.leg.answers_own({}, answered));
    return alone.leg.send_waiting();
  };
  for (int i = 0; i < 4; ++i) {
    REQUIRE(alone.inject());
    CHECK(answer_own(alone.sent().at(0).header().message_id, Command::close, 8));
  }
  REQUIRE(alone.inject());
  const MessageId last = alone.sent().at(0).header().message_id;
  alone.leg.send(request(Command::flush, 1, flush_request_body({1, 2}), {.charge = 16}));
  CHECK(alone.sent().empty());  // the answer to our own may bring ids
  CHECK_FALSE(answer_own(last, Command::close, 1));
  const auto echo = alone.sent();
  REQUIRE(echo.size() == 1);
  CHECK(echo[0].header().command == Command::echo);
  CHECK(echo[0].header().message_id == 1_message);
  CHECK(echo[0].header().credits == 7 + 16);
  CHECK(answer_own(1_message, Command::echo, echo[0].header().credits));
  const auto sent = alone.sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].header().command == Command::flush);
  CHECK(alone.arrive(answer(Command::flush, sent[0].header().message_id, empty_body())).header().message_id ==
        1_message);
}

TEST_CASE("SMB2: a connection ends if its server never grants the ids that a request waits for") {
  LegAlone alone(8);  // ids up to 8
  REQUIRE(alone.inject());
  const MessageId own = alone.sent().at(0).header().message_id;
  alone.leg.send(request(Command::flush, 1, flush_request_body({1, 2}), {.charge = 16}));
  CHECK_FALSE(alone.leg.is_stuck());  // the answer to our own may bring ids
  const auto answer_own = [&](MessageId id, Command command, std::uint16_t credits) {
    const Message answered = answer(command, id, empty_body(), Status::success, {.charge = credits});
    alone.leg.granted(answered);
    CHECK(alone.leg.answers_own({}, answered));
    CHECK_FALSE(alone.leg.send_waiting());
  };
  answer_own(own, Command::close, 0);
  unsigned echoes = 0;
  for (; !alone.leg.is_stuck(); ++echoes) {
    const auto echo = alone.sent();
    REQUIRE(echo.size() == 1);
    REQUIRE(echo[0].header().command == Command::echo);
    answer_own(echo[0].header().message_id, Command::echo, echo[0].header().charge());
  }
  CHECK(echoes >= MessageIds::kMostTries);
  CHECK(alone.sent().empty());
}

TEST_CASE("SMB2: a request that the server answers later begins with its interim answer, once") {
  LegAlone alone;
  int begun = 0;
  REQUIRE(alone.leg.listen(
      kSession, kTree,
      [](const RequestHead& head) {
        return build_change_notify_request(head, {.output_bytes = 4096, .file = {1, 2}, .filter = 1});
      },
      [&](TimePoint) { ++begun; }, [&](TimePoint, const Frame&, const Element&) { ++alone.replies; }));
  const MessageId id = alone.sent().at(0).header().message_id;
  CHECK_FALSE(alone.leg.may_free_ids());  // it may stay for ever
  CHECK(alone.leg.answers_own({}, interim(Command::change_notify, id, 9)));
  CHECK(alone.leg.answers_own({}, interim(Command::change_notify, id, 9)));
  CHECK(begun == 1);
  CHECK(alone.replies == 0);
  CHECK(alone.leg.has_own());
  CHECK(alone.leg.answers_own({}, answer(Command::change_notify, id, buffer_answer_body({}))));
  CHECK(alone.replies == 1);
  CHECK_FALSE(alone.leg.has_own());
}

TEST_CASE("SMB2: behind the end of the client's stream only requests that others wait for are added") {
  LegAlone alone;
  CHECK(alone.leg.can_inject(1));
  alone.leg.set_client(ServerLeg::Client::ended);
  CHECK_FALSE(alone.leg.can_inject(1));
  CHECK(alone.inject_awaited());
  alone.leg.set_client(ServerLeg::Client::is_told);
  CHECK_FALSE(alone.inject_awaited());

  LegAlone opaque;
  opaque.leg.set_opaque();
  CHECK_FALSE(opaque.inject_awaited());
}

TEST_CASE(
    "SMB2: ids that are kept for signed requests go to what the client waits for, if nothing else can come") {
  LegAlone alone(16, Dialect::smb_3_0_2);
  CHECK_FALSE(alone.inject());
  CHECK(alone.inject_awaited());
  CHECK(alone.leg.may_free_ids());
  CHECK_FALSE(alone.inject_awaited());  // the first one's answer may bring ids
}

TEST_CASE("SMB2: a request that can never be sent dooms the connection, once") {
  LegAlone alone;
  REQUIRE(alone.inject());
  const MessageId used = alone.sent().at(0).header().message_id;
  CHECK_FALSE(alone.leg.take_doom());
  alone.leg.send(login(used, 0));
  CHECK(alone.sent().empty());
  CHECK(alone.leg.take_doom());
  CHECK_FALSE(alone.leg.take_doom());
}

}  // namespace longhaul::smb::smb2::test
