// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/scope.h"

#include "proxy/modules/smb/smb1/conversation.h"

namespace longhaul::smb::smb1::testing {
namespace {

TEST_CASE("SMB1: a request waits for the promises that it could show to be unkept") {
  Conversation talk;
  const Open& file = talk.open("F", 10);
  const std::uint16_t fid = file.fid, pipe = 0x7777;
  const auto scope = [&](const Slice& frame) { return scope_of(message_in(frame), talk.connection); };
  const auto of = [&](const Slice& frame) { return scope(frame).of; };
  using Of = Scope::Of;
  CHECK(of(read(fid, 0, 5, 11)) == Of::open);
  CHECK(scope(read(fid, 0, 5, 11)).open == file.key);
  CHECK(of(flush(fid, 11)) == Of::open);
  CHECK(of(set_end_of_file(fid, 5, 11)) == Of::open);
  CHECK(of(close(fid, 11)) == Of::closing);
  CHECK(of(create("F", 11)) == Of::everything);
  CHECK(of(query_path("F", 0x101, 11)) == Of::everything);
  CHECK(of(by_name(0x06, Fields{}.u16(0).bytes, "F", 11)) == Of::everything);
  CHECK(of(read(pipe, 0, 5, 11)) == Of::nothing);
  CHECK(of(flush(0xFFFF, 11)) == Of::everything);  // perhaps of all files
  CHECK(of(negotiate()) == Of::nothing);
  CHECK(of(session_setup()) == Of::nothing);
  for (const std::uint8_t ends_all : std::initializer_list<std::uint8_t>{0x71, 0x74, 0x11})
    CHECK(of(make_frame({.command = ends_all, .tid = kTid, .uid = kUid, .mid = 11}, {}, {})) == Of::silence);
}

TEST_CASE("SMB1: a chain of requests waits for everything") {
  Conversation talk;
  const Open& file = talk.open("F", 10);
  auto chain = message_in(read(file.fid, 0, 5, 11));
  Block second = chain.first();
  second.command = Command::close;
  chain.blocks.push_back(second);
  CHECK(scope_of(chain, talk.connection).of == Scope::Of::everything);
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
