// SPDX-License-Identifier: Apache-2.0
// What an SMB1 client of a flow that bypasses the link is told of lost writes.
#include "proxy/modules/smb/guard.h"

#include <catch2/catch.hpp>
#include <string>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/guarded.h"
#include "proxy/modules/smb/smb1/requests.h"

namespace longhaul::smb::smb1 {
namespace {

using namespace test;
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
  Guarded fresh({});
  fresh.lost->add(lost_file(u"ROBBED", u"T"), {});
  std::string setup = text(one::session_setup(2));
  const std::string connect = text(one::tree_connect(2)).substr(kFrameHeadBytes + smb1::kHeaderBytes);
  setup[kFrameHeadBytes + smb1::kHeaderBytes + 1] = 0x75;
  store_le<std::uint16_t>(
      reinterpret_cast<std::byte*>(setup.data()) + kFrameHeadBytes + smb1::kHeaderBytes + 3,
      static_cast<std::uint16_t>(setup.size() - kFrameHeadBytes));
  setup += connect;
  write_frame_head(setup.size() - kFrameHeadBytes, reinterpret_cast<std::byte*>(setup.data()));
  passes(fresh, Slice::copy_of(as_bytes(setup)));
  answers(fresh, reply(0x73, 2, one::Fields{}.andx().u16(0).bytes));
  fresh.client(one::create("robbed", 4));
  expect_told_smb1(fresh, 4);
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

TEST_CASE("SMB1: a signed open cannot be answered: the client is reset") {
  GuardedSmb1 flow;
  std::string is_signed = text(one::create("\\dir\\robbed", 4));
  is_signed[kFrameHeadBytes + 10] |= 4;
  flow.client(Slice::copy_of(as_bytes(is_signed)));
  CHECK(flow.is_reset);
  CHECK(flow.take_server().empty());
  CHECK(flow.lost->events().counters().reported[static_cast<std::size_t>(promises::Told::reset)] == 1);
}

TEST_CASE("SMB1: raw data that looks like messages ends the guard") {
  GuardedSmb1 flow;
  passes(flow, one::read_raw(1, 0, 100, 5));
  CHECK(flow.guard->is_done());
  passes(flow, one::create("\\dir\\robbed", 6));
  CHECK(flow.lost->any(kEnds));
}

TEST_CASE("SMB1: a file with lost writes is not renamed, once") {
  GuardedSmb1 flow;
  const auto rename = [](std::uint8_t command, std::uint16_t mid) {
    return one::make_frame(
        {.command = command, .tid = one::kTid, .uid = one::kUid, .mid = mid},
        command == 0x07 ? one::Fields{}.u16(0).bytes : one::Fields{}.u16(0).u16(0x104).u32(0).bytes,
        one::Fields{}.u8(4).text("dir\\robbed").u8(0).u8(4).text("x").u8(0).bytes);
  };
  const std::uint8_t command = GENERATE(std::uint8_t{0x07}, std::uint8_t{0xA5});
  flow.client(rename(command, 4));
  expect_told_smb1(flow, 4, command);
  passes(flow, rename(command, 5));
  CHECK(flow.guard->is_done());
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

TEST_CASE("SMB1: a stream is not its file, and the old OPEN and CREATE are opens") {
  GuardedSmb1 flow;
  passes(flow, one::create("\\dir\\robbed:s", 4, {.disposition = 5}));
  answers(flow, reply(0xA2, 4));
  CHECK(flow.lost->any(kEnds));
  SECTION("OPEN") {
    flow.client(one::by_name(0x02, one::Fields{}.u16(0x42).u16(0).bytes, "dir\\robbed", 5));
    expect_told_smb1(flow, 5, 0x02);
  }
  SECTION("CREATE") {
    passes(flow, one::by_name(0x03, one::Fields{}.u16(0).u32(0).bytes, "dir\\robbed", 5));
    answers(flow, reply(0x03, 5));
    CHECK_FALSE(flow.lost->any(kEnds));
  }
}

TEST_CASE("SMB1: a share that the old TREE_CONNECT connects is known") {
  Guarded flow({});
  flow.lost->add(lost_file(u"ROBBED", u"T"), {});
  passes(flow, one::negotiate(1));
  passes(flow, one::session_setup(2));
  passes(flow, one::make_frame(
                   {.command = 0x70, .uid = one::kUid, .mid = 3}, {},
                   one::Fields{}.u8(4).text("\\\\S\\T").u8(0).u8(4).u8(0).u8(4).text("A:").u8(0).bytes));
  answers(flow, one::make_frame({.command = 0x70, .flags = 0x80, .uid = one::kUid, .mid = 3},
                                one::Fields{}.u16(65000).u16(one::kTid).bytes, {}));
  flow.client(one::create("robbed", 5));
  expect_told_smb1(flow, 5);
}

}  // namespace longhaul::smb::smb1
