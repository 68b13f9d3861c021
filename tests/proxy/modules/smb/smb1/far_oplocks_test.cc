// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/far_oplocks.h"

#include "proxy/modules/smb/smb1/conversation.h"

namespace longhaul::smb::smb1::testing {
namespace {

struct Requesting : Conversation {
  FarOplocks oplocks{connection};
  Features features;

  static std::uint32_t flags_of(const Slice& frame) {
    const auto message = message_in(frame);
    return parse_nt_create_request(message.first(), message.header)->flags;
  }
  FarOplocks::Request request(const Slice& frame) {
    ask(frame);
    return oplocks.request(frame_of(frame), message_in(frame), features);
  }
  bool asks(const Slice& frame) { return flags_of(request(frame).frame) != flags_of(frame); }
};

TEST_CASE("SMB1: a batch oplock is requested for the data of a file that the client has not open") {
  Requesting far;
  const auto request = far.request(create("F", 10));
  CHECK(Requesting::flags_of(request.frame) == 6);
  REQUIRE(request.cached);
  CHECK(request.cached->path == u"F");
  CHECK_FALSE(far.oplocks.answered(number_of(11)));
  CHECK(far.oplocks.answered(number_of(10)));
  CHECK_FALSE(far.oplocks.answered(number_of(10)));
}

TEST_CASE("SMB1: no oplock is requested where it would not help or would disturb") {
  Requesting far;
  SECTION("for attributes only") { CHECK_FALSE(far.asks(create("F", 10, {.access = 0x80}))); }
  SECTION("a folder") { CHECK_FALSE(far.asks(create("F", 10, {.options = 1}))); }
  SECTION("a stream") { CHECK_FALSE(far.asks(create("F:s", 10))); }
  SECTION("the share itself") { CHECK_FALSE(far.asks(create("", 10))); }
  SECTION("the name was contended") {
    far.oplocks.broken(file_name(kTid, as_bytes("F"), false));
    CHECK_FALSE(far.asks(create("F", 10)));
    CHECK(far.asks(create("G", 11)));
  }
  SECTION("the client has it open") {
    far.open("F", 10);
    CHECK_FALSE(far.asks(create("F", 11)));
    CHECK(far.asks(create("G", 12)));
  }
  SECTION("it is only being looked at, or closed") {
    far.open("F", 10).looks = true;
    far.open("F", 11).closing = true;
    CHECK(far.asks(create("F", 12)));
  }
  SECTION("nothing would use it") {
    far.features = {.read_ahead = false, .write_behind = false, .metadata = false};
    CHECK_FALSE(far.asks(create("F", 10)));
  }
  SECTION("the client requests its own") {
    const auto request = far.request(create("F", 10, {.flags = 2}));
    CHECK(Requesting::flags_of(request.frame) == 2);
    CHECK(request.cached);  // which may be cached all the same
    CHECK_FALSE(far.oplocks.answered(number_of(10)));
  }
}

TEST_CASE("SMB1: the client sees no oplock that it has not asked for") {
  Requesting far;
  far.server.files["F"];
  far.server.receive(far.request(create("F", 10)).frame.bytes().subspan(kFrameHeadBytes));
  const Slice granted = far.server.out.front();
  const auto oplock_in = [](const Slice& frame) {
    return parse_nt_create_reply(message_in(frame).first())->oplock;
  };
  CHECK(oplock_in(granted) == Oplock::batch);
  CHECK(oplock_in(FarOplocks::hidden(frame_of(granted), message_in(granted))) == Oplock::none);
  const Slice refused = make_frame({.command = 0xA2, .status = 0xC0000022, .flags = 0x80, .mid = 10}, {}, {});
  CHECK(as_text(FarOplocks::hidden(frame_of(refused), message_in(refused)).bytes()) ==
        as_text(refused.bytes()));
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
