// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/opening.h"

#include "proxy/modules/smb/smb1/conversation.h"

namespace longhaul::smb::smb1::testing {
namespace {

std::optional<Opening> opening_in(const Slice& frame) {
  const auto message = message_in(frame);
  return opening_of(message, message.first());
}

// [MS-CIFS] 2.2.4.41.1
Slice open_andx(unsigned access, unsigned mode) {
  return make_frame(
      {.command = 0x2D, .tid = kTid, .uid = kUid, .mid = 9},
      Fields{}.andx().u16(0).u16(access).u16(0).u16(0).u32(0).u16(mode).u32(0).u32(0).u32(0).bytes,
      Fields{}.text("F").u8(0).bytes);
}

TEST_CASE("SMB1: what an open asks for follows from its access and options") {
  const auto reads = opening_in(create("F", 9, {.access = 0x1}));
  REQUIRE(reads);
  CHECK(reads->open.may_read);
  CHECK_FALSE(reads->open.may_write);
  CHECK(reads->use == LostWrites::Use::reads);
  CHECK(reads->is_nt_create);
  const auto writes = opening_in(create("F", 9, {.access = 0x2, .options = 0x1002}));
  REQUIRE(writes);
  CHECK(writes->open.may_write);
  CHECK(writes->open.write_through);
  CHECK(writes->open.delete_on_close);
  CHECK(writes->use == LostWrites::Use::writes);
  const auto looks = opening_in(create("F", 9, {.access = 0x80}));
  REQUIRE(looks);
  CHECK(looks->open.looks);
  CHECK(opening_in(create("F:stream", 9))->open.unnamed);
}

TEST_CASE("SMB1: OPEN_ANDX says by its mode whether the content is kept") {
  CHECK(opening_in(open_andx(0, 1))->use == LostWrites::Use::reads);
  CHECK(opening_in(open_andx(1, 1))->use == LostWrites::Use::writes);
  CHECK(opening_in(open_andx(1, 2))->use == LostWrites::Use::replaces);
  CHECK_FALSE(opening_in(open_andx(1, 1))->is_nt_create);
}

TEST_CASE("SMB1: other requests open nothing") {
  CHECK_FALSE(opening_in(read(1, 0, 5, 9)));
  CHECK_FALSE(opening_in(make_frame({.command = 0xA2}, {}, {})));
}

TEST_CASE("SMB1: an open with anything but READs behind it is not tracked") {
  const auto chained = [](std::uint8_t second) {
    const auto message = message_in(create("F", 9));
    auto chain = message;
    Block block = message.first();
    block.command = static_cast<Command>(second);
    block.at = message.first().at + 1;
    chain.blocks.push_back(block);
    return opening_of(chain, chain.first()).has_value();
  };
  CHECK(chained(kRead));
  CHECK_FALSE(chained(kWrite));
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
