// SPDX-License-Identifier: Apache-2.0
// What an SMB2 client of a flow that bypasses the link is told of lost writes, and that all else passes
// unchanged. SMB1: smb1/guard_test.cc.
#include "proxy/modules/smb/guard.h"

#include <catch2/catch.hpp>
#include <string>

#include "proxy/modules/smb/guarded.h"
#include "proxy/modules/smb/smb2/conversation.h"

namespace longhaul::smb {
namespace {

using namespace smb2::test;
using namespace test;
using smb2::Command;
using smb2::Message;

Message message_in(const std::string& bytes) { return message_of(Slice::copy_of(as_bytes(bytes))); }

Body tree_connect_body(std::string_view unc) {
  const std::string wide = utf16(unc);
  return Body([&](auto& out) {
    out.u16(9), out.u16(0), out.u16(smb2::kHeaderBytes + 8), out.u16(static_cast<std::uint16_t>(wide.size()));
    out.bytes(as_bytes(wide));
  });
}

// The client connects to a share; ids 0 to 2.
void connect_smb2(Guarded& flow, std::uint32_t tree_flags = 0) {
  flow.client(request(Command::negotiate, 0, negotiate_request_body(), {.session = 0, .tree = 0}));
  flow.server(answer(Command::negotiate, 0, negotiate_answer_body(smb2::Dialect::smb_3_1_1)));
  flow.client(request(Command::session_setup, 1, session_setup_request_body(), {.session = 0, .tree = 0}));
  flow.server(answer(Command::session_setup, 1, session_setup_answer_body()));
  flow.client(request(Command::tree_connect, 2, tree_connect_body("\\\\Server\\data"),
                      {.tree = 0, .flags = tree_flags}));
  flow.server(answer(Command::tree_connect, 2, tree_connect_answer_body()));
  flow.take_client(), flow.take_server();
}

Message echo(smb2::test::AnyId id, std::uint16_t charge = 1) {
  return request(Command::echo, id, empty_body(), {.charge = charge});
}

// The guard has sent an ECHO in the place of a request; the server answers it with some credits.
void expect_echo(Guarded& flow, smb2::test::AnyId id) {
  const Message sent = message_in(flow.take_server());
  CHECK(sent.single());
  CHECK(sent.header().command == Command::echo);
  CHECK(sent.header().message_id == id);
  CHECK(sent.header().session_id == kSession);
  smb2::Header head = smb2::answer_to(sent.header(), Status::success);
  head.credits = 7;
  flow.server(smb2::build_empty_response(head));
}
void expect_told(Guarded& flow, smb2::test::AnyId id, Command command = Command::create) {
  const Message told = message_in(flow.take_client());
  CHECK(told.single());
  CHECK(told.header().command == command);
  CHECK(told.header().message_id == id);
  CHECK(told.header().status == Status::lost_writebehind_data);
  CHECK(told.header().credits == 7);
  CHECK(told.header().tree_id == kTree);
  CHECK(told.header().session_id == kSession);
  CHECK(smb2::parse_error_response(told.first().bytes).has_value());
}

smb2::CreateRequest with(smb2::Disposition disposition) { return {.disposition = disposition}; }

void passes(Guarded& flow, const Message& message) {
  flow.client(message);
  CHECK((flow.take_server() == text(message)));
  CHECK(flow.take_client().empty());
}
void answers(Guarded& flow, const Message& message) {
  flow.server(message);
  CHECK((flow.take_client() == text(message)));
  CHECK(flow.take_server().empty());
}

}  // namespace

TEST_CASE("SMB2: the next open of a file reports lost writes, once, and the server sees an ECHO") {
  Guarded flow({u"DIR\\ROBBED"});
  flow.piece = GENERATE(std::size_t{1}, std::size_t{7}, ~std::size_t{0});
  connect_smb2(flow, GENERATE(0u, smb2::header_flags::is_signed));
  passes(flow, create_request(3, "dir\\other"));
  flow.client(create_request(4, "dir\\Robbed", {}, {.charge = 2}));
  expect_echo(flow, 4);
  expect_told(flow, 4);
  CHECK(flow.lost->any(kEnds));  // it is unknown yet whether the client has read it
  passes(flow, create_request(6, "dir\\Robbed"));
  CHECK_FALSE(flow.lost->any(kEnds));
  CHECK(flow.guard->is_done());
  CHECK(flow.guard->held_bytes() == 0);
}

TEST_CASE("SMB2: a frame that was sent before the error came to its client's host does not count as having read it") {
  Guarded flow({u"ROBBED"});
  flow.client_acknowledges = false;
  connect_smb2(flow);
  flow.client(create_request(3, "robbed"));
  expect_echo(flow, 3);
  expect_told(flow, 3);
  passes(flow, echo(4));
  CHECK(flow.lost->any(kEnds));
  flow.guard->arrived(flow.guard->awaited());
  CHECK(flow.lost->any(kEnds));
  passes(flow, echo(5));
  CHECK_FALSE(flow.lost->any(kEnds));
}

TEST_CASE("SMB2: a client that closes in order has read the error, and one that aborts has not") {
  const bool in_order = GENERATE(true, false);
  Guarded flow({u"ROBBED"});
  connect_smb2(flow);
  flow.client(create_request(3, "robbed"));
  expect_echo(flow, 3);
  expect_told(flow, 3);
  modules::Guard::Out out;
  if (in_order) flow.guard->client_ended(out);
  flow.guard.reset();
  CHECK(flow.lost->any(kEnds) == !in_order);
}

TEST_CASE(
    "SMB2: an open for attributes passes, and an open for reading gets the report before one for writing") {
  Guarded flow({u"ROBBED"});
  connect_smb2(flow);
  passes(flow, create_request(3, "robbed", {.desired_access = smb2::access::read_attributes}));
  flow.client(create_request(4, "robbed", {.desired_access = smb2::access::read_data}));
  expect_echo(flow, 4);
  expect_told(flow, 4);
  passes(flow, create_request(5, "robbed", {.desired_access = smb2::access::read_data}));
  flow.client(create_request(6, "robbed"));
  expect_echo(flow, 6);
  expect_told(flow, 6);
  passes(flow, create_request(7, "robbed"));
}

TEST_CASE("SMB2: an open that replaces the content ends the loss if it succeeds") {
  Guarded flow({u"ROBBED"});
  connect_smb2(flow);
  passes(flow, create_request(3, "robbed", with(smb2::Disposition::overwrite_if)));
  answers(flow, interim(Command::create, 3, 9));
  answers(flow, error(Command::create, 3, Status::sharing_violation));
  CHECK(flow.lost->any(kEnds));
  passes(flow, create_request(4, "robbed", with(smb2::Disposition::overwrite_if)));
  CHECK_FALSE(flow.guard->is_done());
  answers(flow, answer(Command::create, 4, create_answer_body({.file = {1, 1}})));
  CHECK_FALSE(flow.lost->any(kEnds));
  CHECK(flow.guard->is_done());
}

TEST_CASE("SMB2: of several concurrent opens of one file, one gets the report") {
  Guarded flow({u"ROBBED"});
  connect_smb2(flow);
  flow.client(create_request(3, "robbed"));
  const Message first = message_in(flow.take_server());
  passes(flow, create_request(4, "robbed"));
  flow.server(smb2::build_empty_response(smb2::answer_to(first.header(), Status::success)));
  CHECK(message_in(flow.take_client()).header().status == Status::lost_writebehind_data);
}

TEST_CASE("SMB2: a server that refuses the ECHO has ended the session, so the loss waits for the next open") {
  Guarded flow({u"ROBBED"});
  connect_smb2(flow);
  flow.client(create_request(3, "robbed"));
  flow.take_server();
  flow.server(error(Command::echo, 3, Status::network_session_expired));
  const Message told = message_in(flow.take_client());
  CHECK(told.header().command == Command::create);
  CHECK(told.header().status == Status::network_session_expired);
  flow.client(create_request(4, "robbed"));
  expect_echo(flow, 4);
  expect_told(flow, 4);
}

TEST_CASE("SMB2: compound requests that use a refused open fail with it, the rest passes") {
  using smb2::header_flags::related;
  Guarded flow({u"ROBBED"});
  connect_smb2(flow);
  const Message other = create_request(3, "other"), robbed = create_request(5, "robbed"),
                last = create_request(8, "last");
  const auto part = [](const Message& of) {
    return std::pair{of.header(), Body([&](auto& out) { out.bytes(of.first().body()); })};
  };
  const Of behind{.session = ~smb2::SessionId{0}, .tree = ~smb2::TreeId{0}, .flags = related};
  const Message message = compound(
      {part(other),
       {request_header(Command::close, 4, behind), close_request_body(smb2::kPreviousFile)},
       part(robbed),
       {request_header(Command::write, 6, behind), write_request_body(smb2::kPreviousFile, 0, "data")},
       {request_header(Command::close, 7, behind), close_request_body(smb2::kPreviousFile)},
       part(last)});
  flow.client(message);

  FrameSplitter sent(Framing::direct_tcp);
  sent.push(Slice::copy_of(as_bytes(flow.take_server())));
  std::vector<Message> frames;
  while (auto frame = sent.next().value()) frames.push_back(smb2::parse_message(*frame).value());
  REQUIRE(frames.size() == 5);
  REQUIRE(frames[0].elements.size() == 2);
  CHECK(frames[0].elements[1].header.is_related());
  CHECK(frames[0].elements[0].header.message_id == smb2::MessageId{3});
  for (std::size_t i = 1; i <= 3; ++i) {
    CHECK(frames[i].header().command == Command::echo);
    CHECK(frames[i].header().message_id == smb2::MessageId{4} + i);
    CHECK(frames[i].header().session_id == kSession);
    CHECK_FALSE(frames[i].header().is_related());
  }
  CHECK((text(frames[4]) == text(last)));

  const Command commands[] = {Command::create, Command::write, Command::close};
  for (std::size_t i = 1; i <= 3; ++i) {
    smb2::Header head = smb2::answer_to(frames[i].header(), Status::success);
    head.credits = 7;
    flow.server(smb2::build_empty_response(head));
    expect_told(flow, 4 + i, commands[i - 1]);
  }
  CHECK_FALSE(flow.guard->is_done());
  passes(flow, echo(9));
  CHECK(flow.guard->is_done());
}

TEST_CASE("SMB2: reconnected handles pass") {
  Guarded flow({u"ROBBED"});
  connect_smb2(flow);
  const std::string id(16, '\1');
  smb2::CreateRequest reconnects;
  reconnects.contexts.push_back({as_bytes(smb2::create_context::durable_reconnect), as_bytes(id)});
  passes(flow, create_request(5, "robbed", reconnects));
  CHECK(flow.lost->any(kEnds));
}

TEST_CASE(
    "SMB2: a signed open of a file with lost writes cannot be answered: the client is reset, each time for a "
    "while") {
  const auto is_signed = [](smb2::test::AnyId id, std::string_view name) {
    return create_request(id, name, {}, {.flags = smb2::header_flags::is_signed});
  };
  Guarded flow({u"ROBBED", u"OTHER"});
  link::TimePoint now{};
  flow.lost->set_clock([&] { return now; });
  connect_smb2(flow);
  passes(flow, is_signed(3, "third"));
  flow.client(is_signed(4, "robbed"));
  CHECK(flow.is_reset);
  CHECK(flow.take_server().empty());
  CHECK(flow.lost->has_record(lost_file(u"OTHER")));
  for (const bool is_over : {false, true}) {
    if (is_over) now += LostRecord::kResetsFor;
    Guarded next({});
    next.lost = flow.lost;
    next.guard = std::make_unique<Guard>(kEnds, next.lost);
    connect_smb2(next);
    if (is_over) {
      passes(next, is_signed(3, "robbed"));
    } else {
      next.client(is_signed(3, "robbed"));
      CHECK(next.is_reset);
    }
  }
  CHECK_FALSE(flow.lost->has_record(lost_file(u"ROBBED")));
  CHECK(flow.lost->has_record(lost_file(u"OTHER")));
  CHECK(flow.lost->events().counters().reported[static_cast<std::size_t>(promises::Told::reset)] == 1);
}

TEST_CASE("SMB2: an encrypted request may open any file: the client is reset for all that was lost") {
  Guarded flow({u"ROBBED", u"OTHER"});
  link::TimePoint now{};
  flow.lost->set_clock([&] { return now; });
  connect_smb2(flow);
  const std::string plain = text(create_request(3, "third"));
  std::string sealed = plain;
  sealed[kFrameHeadBytes] = GENERATE('\xFD', '\xFC');
  flow.server(Slice::copy_of(as_bytes(sealed)));
  CHECK_FALSE(flow.is_reset);
  flow.client(Slice::copy_of(as_bytes(sealed)));
  CHECK(flow.is_reset);
  CHECK(flow.lost->events().counters().reported[static_cast<std::size_t>(promises::Told::reset)] == 2);
  now += LostRecord::kResetsFor;
  CHECK_FALSE(flow.lost->any(kEnds));
}

TEST_CASE("SMB2: a file with lost writes is not renamed or linked, once") {
  using smb2::header_flags::related;
  Guarded flow({u"ROBBED"});
  connect_smb2(flow);
  const std::uint8_t info_class = GENERATE(smb2::file_info::rename, smb2::file_info::link);
  constexpr std::uint32_t kDelete = 0x10080;
  SECTION("through an open handle") {
    passes(flow, create_request(3, "robbed", {.desired_access = kDelete}));
    answers(flow, answer(Command::create, 3, create_answer_body({.file = {1, 1}})));
    const auto set = [&](smb2::test::AnyId id, std::uint8_t of_class) {
      return request(Command::set_info, id, set_info_request_body({1, 1}, of_class));
    };
    passes(flow, set(4, smb2::file_info::basic));
    flow.client(set(5, info_class));
    expect_echo(flow, 5);
    expect_told(flow, 5, Command::set_info);
    passes(flow, set(6, info_class));
  }
  SECTION("in the compound that opens it") {
    const Of behind{.session = ~smb2::SessionId{0}, .tree = ~smb2::TreeId{0}, .flags = related};
    const Message create = create_request(3, "robbed", {.desired_access = kDelete});
    flow.client(compound({{create.header(), Body([&](auto& out) { out.bytes(create.first().body()); })},
                          {request_header(Command::set_info, 4, behind),
                           set_info_request_body(smb2::kPreviousFile, info_class)}}));
    FrameSplitter sent(Framing::direct_tcp);
    sent.push(Slice::copy_of(as_bytes(flow.take_server())));
    for (const Command command : {Command::create, Command::set_info}) {
      const Message one = smb2::parse_message(*sent.next().value()).value();
      CHECK(one.header().command == Command::echo);
      smb2::Header head = smb2::answer_to(one.header(), Status::success);
      head.credits = 7;
      flow.server(smb2::build_empty_response(head));
      expect_told(flow, one.header().message_id, command);
    }
    passes(flow, echo(5));
  }
  CHECK_FALSE(flow.lost->any(kEnds));
}

TEST_CASE(
    "a guard stays while another flow of its client may lose writes, and nothing is promised when it "
    "leaves") {
  Guarded flow({});
  flow.lost->live().enter(kEnds, nullptr);
  connect_smb2(flow);
  CHECK_FALSE(flow.guard->is_done());
  CHECK_FALSE(flow.lost->live().has_unguarded(kEnds));
  SECTION("it loses some") {
    flow.lost->add(lost_file(u"ROBBED"), {});
    flow.lost->live().leave(kEnds, nullptr);
    flow.client(create_request(3, "robbed"));
    expect_echo(flow, 3);
    expect_told(flow, 3);
  }
  SECTION("it ends without a loss") {
    flow.lost->live().leave(kEnds, nullptr);
    passes(flow, echo(3));
    CHECK(flow.guard->is_done());
    CHECK(flow.lost->live().has_unguarded(kEnds));
    flow.guard.reset();
    CHECK_FALSE(flow.lost->live().has_unguarded(kEnds));
  }
}

TEST_CASE("other shares, other files and clients without a record pass") {
  Guarded flow({u"ROBBED"});
  connect_smb2(flow);
  passes(flow, request(Command::tree_connect, 3, tree_connect_body("\\\\server\\other"), {.tree = 0}));
  answers(flow, answer(Command::tree_connect, 3, tree_connect_answer_body(), Status::success, {.tree = 9}));
  passes(flow, create_request(4, "robbed", {}, {.tree = 9}));
  CHECK_FALSE(flow.guard->is_done());

  Guarded stranger({u"ROBBED"}, {.client = {std::byte{9}}, .server = kEnds.server, .server_port = 445});
  passes(stranger, echo(0));
  CHECK(stranger.guard->is_done());
}

TEST_CASE("an unparsable flow passes from that byte on, and the end of a flow releases held requests") {
  Guarded flow({u"ROBBED"});
  connect_smb2(flow);
  const std::string frame = text(create_request(3, "robbed")), garbage = "GET / HTTP/1.1\r\n";
  flow.say(as_bytes(garbage), true);
  CHECK((flow.take_server() == garbage));
  CHECK(flow.guard->is_done());
  flow.say(as_bytes(frame), true);
  CHECK((flow.take_server() == frame));

  Guarded cut({u"ROBBED"});
  connect_smb2(cut);
  cut.say(as_bytes(frame).first(50), true);
  cut.say(as_bytes(frame).first(20), false);
  CHECK(cut.guard->held_bytes() == 70);
  modules::Guard::Out out;
  if (GENERATE(false, true))
    cut.guard->client_ended(out);
  else
    cut.guard->server_ended(out);
  cut.collect(out);
  CHECK((cut.at_server == frame.substr(0, 50)));
  CHECK((cut.at_client == frame.substr(0, 20)));
  CHECK(cut.guard->is_done());
  CHECK(cut.lost->any(kEnds));
}

TEST_CASE("SMB2: a pending answer is changed even if the client's requests can no longer be parsed") {
  Guarded flow({u"ROBBED"});
  connect_smb2(flow);
  flow.client(create_request(3, "robbed"));
  const Message sent = message_in(flow.take_server());
  flow.say(as_bytes("no frame"), true);
  CHECK_FALSE(flow.guard->is_done());
  flow.server(smb2::build_empty_response(smb2::answer_to(sent.header(), Status::success)));
  CHECK(message_in(flow.take_client()).header().status == Status::lost_writebehind_data);
  CHECK(flow.guard->is_done());
}

TEST_CASE("SMB2: a stream is not its file, and a DFS name is one of its share") {
  Guarded flow({u"ROBBED"});
  connect_smb2(flow);
  passes(flow, create_request(3, "robbed:s", with(smb2::Disposition::overwrite_if)));
  answers(flow, answer(Command::create, 3, create_answer_body({.file = {1, 1}})));
  passes(flow, create_request(4, "robbed:s"));
  CHECK(flow.lost->any(kEnds));
  const bool is_dfs = GENERATE(false, true);
  flow.client(create_request(5, is_dfs ? "server\\data\\robbed" : "robbed::$DATA", {},
                             {.flags = is_dfs ? smb2::header_flags::dfs : 0}));
  expect_echo(flow, 5);
  expect_told(flow, 5);
}

}  // namespace longhaul::smb
