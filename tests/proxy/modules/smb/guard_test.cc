// SPDX-License-Identifier: Apache-2.0
// Reports of lost writes to the client of a bypassing flow; everything else passes unchanged.
#include "proxy/modules/smb/guard.h"

#include <catch2/catch.hpp>
#include <string>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb1/requests.h"
#include "proxy/modules/smb/smb2/conversation.h"

namespace longhaul::smb {
namespace {

using namespace smb2::test;
using smb2::Command;
using smb2::Message;

constexpr LostWrites::Ends kEnds{.client = {std::byte{1}}, .server = {std::byte{2}}, .server_port = 445};

LostWrites::File lost_file(std::u16string path, std::u16string share = u"DATA") {
  return {.ends = kEnds, .share = std::move(share), .path = std::move(path)};
}

// A connection through a guard: what each side has received, as text.
struct Guarded {
  std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>();
  std::unique_ptr<Guard> guard;
  std::size_t piece = ~std::size_t{0};  // bytes at a time
  std::string at_client, at_server;

  explicit Guarded(std::initializer_list<std::u16string> paths, LostWrites::Ends ends = kEnds) {
    for (const std::u16string& path : paths) lost->add(lost_file(path), {});
    guard = std::make_unique<Guard>(ends, lost);
  }
  void collect(const modules::Guard::Out& out) {
    for (const Slice& slice : out.to_client) at_client += as_text(slice.bytes());
    for (const Slice& slice : out.to_server) at_server += as_text(slice.bytes());
  }
  void say(Bytes bytes, bool is_client) {
    while (!bytes.empty()) {
      const std::size_t size = std::min(piece, bytes.size());
      modules::Guard::Out out;
      if (is_client)
        guard->from_client(Slice::copy_of(bytes.first(size)), out);
      else
        guard->from_server(Slice::copy_of(bytes.first(size)), out);
      collect(out);
      bytes = bytes.subspan(size);
    }
  }
  void client(const Slice& frame) { say(frame.bytes(), true); }
  void server(const Slice& frame) { say(frame.bytes(), false); }
  void client(const Message& message) { client(message.frame.bytes); }
  void server(const Message& message) { server(message.frame.bytes); }
  std::string take_client() { return std::exchange(at_client, {}); }
  std::string take_server() { return std::exchange(at_server, {}); }
};

std::string text(const Slice& frame) { return std::string(as_text(frame.bytes())); }
std::string text(const Message& message) { return text(message.frame.bytes); }
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

Message echo(smb2::MessageId id, std::uint16_t charge = 1) {
  return request(Command::echo, id, empty_body(), {.charge = charge});
}

// The guard has sent an ECHO in the place of a request; the server answers it with some credits.
void expect_echo(Guarded& flow, smb2::MessageId id) {
  const Message sent = message_in(flow.take_server());
  CHECK(sent.single());
  CHECK(sent.header().command == Command::echo);
  CHECK(sent.header().message_id == id);
  CHECK(sent.header().session_id == kSession);
  smb2::Header head = smb2::answer_to(sent.header(), Status::success);
  head.credits = 7;
  flow.server(smb2::build_empty_response(head));
}
void expect_told(Guarded& flow, smb2::MessageId id, Command command = Command::create) {
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
  CHECK(frames[0].elements[0].header.message_id == 3);
  for (std::size_t i = 1; i <= 3; ++i) {
    CHECK(frames[i].header().command == Command::echo);
    CHECK(frames[i].header().message_id == 4 + i);
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

TEST_CASE("SMB2: signed or encrypted requests and reconnected handles pass") {
  Guarded flow({u"ROBBED"});
  connect_smb2(flow);
  passes(flow, create_request(3, "robbed", {}, {.flags = smb2::header_flags::is_signed}));
  std::string sealed = text(create_request(4, "robbed"));
  sealed[kFrameHeadBytes] = '\xFD';
  flow.client(Slice::copy_of(as_bytes(sealed)));
  CHECK((flow.take_server() == sealed));
  const std::string id(16, '\1');
  smb2::CreateRequest reconnects;
  reconnects.contexts.push_back({as_bytes(smb2::create_context::durable_reconnect), as_bytes(id)});
  passes(flow, create_request(5, "robbed", reconnects));
  CHECK(flow.lost->any(kEnds));
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
  switch (GENERATE(0, 1, 2)) {
    case 0:
      cut.guard->client_ended(out);
      break;
    case 1:
      cut.guard->server_ended(out);
      break;
    default:
      cut.guard->give_up(out);
  }
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

// ---- SMB1

namespace {

namespace one = smb1::testing;

void answers(Guarded& flow, const Slice& frame) {
  flow.server(frame);
  CHECK((flow.take_client() == text(frame)));
}
void passes(Guarded& flow, const Slice& frame) {
  flow.client(frame);
  CHECK((flow.take_server() == text(frame)));
  CHECK(flow.take_client().empty());
}
Slice reply(std::uint8_t command, std::uint16_t mid, const Buffer& words = {}, std::uint32_t status = 0) {
  return one::make_frame(
      {.command = command, .status = status, .flags = 0x80, .tid = one::kTid, .uid = one::kUid, .mid = mid},
      words, {});
}
Slice tree_connected(std::uint16_t mid) {
  return reply(0x75, mid, one::Fields{}.andx().u16(1).u32(0).u32(0).bytes);
}

// To the share T.
void connect_smb1(Guarded& flow) {
  passes(flow, one::negotiate(1));
  passes(flow, one::session_setup(2));
  passes(flow, one::tree_connect(3));
  answers(flow, tree_connected(3));
}
void expect_told_smb1(Guarded& flow, std::uint16_t mid, std::uint8_t command = 0xA2) {
  CHECK(flow.take_server().empty());
  const std::string frame = flow.take_client();
  const auto told = smb1::parse_message(as_bytes(frame).subspan(kFrameHeadBytes)).value();
  CHECK(told.header.is_reply());
  CHECK(static_cast<std::uint8_t>(told.header.command) == command);
  CHECK(told.header.mid == mid);
  CHECK(told.header.status == static_cast<std::uint32_t>(Status::lost_writebehind_data));
  CHECK(told.first().words.empty());
}
// OPEN_ANDX ([MS-CIFS] 2.2.4.41.1)
Slice open_andx(std::string_view name, std::uint16_t access, std::uint16_t mode, std::uint16_t mid) {
  return one::make_frame(
      {.command = 0x2D, .tid = one::kTid, .uid = one::kUid, .mid = mid},
      one::Fields{}.andx().u16(0).u16(access).u16(0).u16(0).u32(0).u16(mode).u32(0).u32(0).u32(0).bytes,
      one::Fields{}.text(name).u8(0).bytes);
}

struct GuardedSmb1 : Guarded {
  GuardedSmb1() : Guarded({}) {
    lost->add(lost_file(u"DIR\\ROBBED", u"T"), {});
    connect_smb1(*this);
  }
};

}  // namespace

TEST_CASE("SMB1: the next open of a file reports lost writes, once, and the server sees nothing") {
  GuardedSmb1 flow;
  flow.piece = GENERATE(std::size_t{1}, ~std::size_t{0});
  passes(flow, one::create("\\dir\\other", 4));
  flow.client(one::create("\\dir\\robbed", 5));
  expect_told_smb1(flow, 5);
  passes(flow, one::create("\\dir\\robbed", 6));
  CHECK(flow.guard->is_done());
}

TEST_CASE("SMB1: the error ends a chain that starts with the open; a chain that only ends with one passes") {
  GuardedSmb1 flow;
  // NT_CREATE_ANDX and READ_ANDX in one message.
  std::string chain = text(one::create("\\dir\\robbed", 4));
  const std::string read = text(one::read(1, 0, 100, 4)).substr(kFrameHeadBytes + smb1::kHeaderBytes);
  chain[kFrameHeadBytes + smb1::kHeaderBytes + 1] = 0x2E;
  store_le<std::uint16_t>(
      reinterpret_cast<std::byte*>(chain.data()) + kFrameHeadBytes + smb1::kHeaderBytes + 3,
      static_cast<std::uint16_t>(chain.size() - kFrameHeadBytes));
  chain += read;
  write_frame_head(chain.size() - kFrameHeadBytes, reinterpret_cast<std::byte*>(chain.data()));
  flow.client(Slice::copy_of(as_bytes(chain)));
  expect_told_smb1(flow, 4);
  CHECK(flow.lost->any(kEnds));

  // SESSION_SETUP_ANDX, TREE_CONNECT_ANDX: the share is learned from a chain, too.
  Guarded anew({});
  anew.lost->add(lost_file(u"ROBBED", u"T"), {});
  std::string setup = text(one::session_setup(2));
  const std::string connect = text(one::tree_connect(2)).substr(kFrameHeadBytes + smb1::kHeaderBytes);
  setup[kFrameHeadBytes + smb1::kHeaderBytes + 1] = 0x75;
  store_le<std::uint16_t>(
      reinterpret_cast<std::byte*>(setup.data()) + kFrameHeadBytes + smb1::kHeaderBytes + 3,
      static_cast<std::uint16_t>(setup.size() - kFrameHeadBytes));
  setup += connect;
  write_frame_head(setup.size() - kFrameHeadBytes, reinterpret_cast<std::byte*>(setup.data()));
  passes(anew, Slice::copy_of(as_bytes(setup)));
  answers(anew, reply(0x73, 2, one::Fields{}.andx().u16(0).bytes));
  anew.client(one::create("robbed", 4));
  expect_told_smb1(anew, 4);
}

TEST_CASE("SMB1: OPEN_ANDX gets the report as well, unless it truncates the file and succeeds") {
  GuardedSmb1 flow;
  passes(flow, open_andx("\\dir\\robbed", 0x42, 0x12, 4));
  answers(flow, reply(0x2D, 4, {}, 0xC0000043));
  flow.client(open_andx("\\dir\\robbed", 0x42, 0x11, 5));
  expect_told_smb1(flow, 5, 0x2D);
  GuardedSmb1 other;
  passes(other, open_andx("\\dir\\robbed", 0x42, 0x12, 4));
  answers(other, reply(0x2D, 4));
  CHECK_FALSE(other.lost->any(kEnds));
  CHECK(other.guard->is_done());
}

TEST_CASE("SMB1: signed requests pass, and raw data that looks like messages ends the guard") {
  GuardedSmb1 flow;
  std::string is_signed = text(one::create("\\dir\\robbed", 4));
  is_signed[kFrameHeadBytes + 10] |= 4;
  passes(flow, Slice::copy_of(as_bytes(is_signed)));
  passes(flow, one::read_raw(1, 0, 100, 5));
  CHECK(flow.guard->is_done());
  passes(flow, one::create("\\dir\\robbed", 6));
  CHECK(flow.lost->any(kEnds));
}

TEST_CASE("a flow to port 139 is guarded after its session request") {
  LostWrites::Ends ends = kEnds;
  ends.server_port = 139;
  Guarded flow({}, ends);
  LostWrites::File file = lost_file(u"ROBBED", u"T");
  file.ends = ends;
  flow.lost->add(file, {});
  std::string session(kFrameHeadBytes + 68, '\0');
  session[0] = '\x81';
  session[3] = 68;
  passes(flow, Slice::copy_of(as_bytes(session)));
  const std::string accepted("\x82\0\0\0", 4);
  answers(flow, Slice::copy_of(as_bytes(accepted)));
  connect_smb1(flow);
  flow.client(one::create("robbed", 5));
  expect_told_smb1(flow, 5);
}

}  // namespace longhaul::smb
