// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/near_reads.h"

#include "proxy/modules/smb/smb1/conversation.h"
#include "tests/proxy/modules/twin/numbers.h"

namespace longhaul::smb::smb1::testing {
namespace {

struct Reading : Conversation {
  Outputs out;
  LocalAnswers local{connection};
  Promises promises;
  modules::Counters counters;
  NearReads reads{out, connection, local, promises, counters, std::make_shared<AheadAccount>()};
  Open& file = open_batch("F");

  Reading() {
    reads.opened(file.key);
    (void)PutOut(out);
  }
  bool request(std::uint64_t offset, std::uint32_t length, std::uint16_t mid) {
    const Slice frame = read(file.fid, offset, length, mid);
    ask(frame);
    const auto message = message_in(frame);
    return reads.request({}, frame_of(frame), message.header, *parse_read_request(message.first()), file);
  }
  void push(std::uint64_t offset, std::string_view data) {
    reads.pushed({}, {.open = file.key, .offset = offset, .length = static_cast<std::uint32_t>(data.size())},
                 Slice::copy_of(as_bytes(data)));
  }
  static Slice number(MessageNumber number) { return Slice::copy_of(Fields{}.u64(number.number()).bytes); }
};

TEST_CASE("SMB1: a READ whose data is missing passes behind Asked, and pushed data answers it") {
  Reading near;
  REQUIRE(near.request(0, 5, 11));
  const PutOut asked(near.out);
  CHECK(asked.passed.size() == 1);
  REQUIRE(asked.all<Asked>().size() == 1);
  CHECK(asked.all<Asked>()[0].missing_to == 5);
  CHECK(near.reads.waits_in(kUid, kTid));
  CHECK_FALSE(near.reads.waits_in(kUid, kTid + 1));
  const MessageNumber number = asked.all<Asked>()[0].message;
  const Answer through{.open = near.file.key,
                       .command = static_cast<std::uint16_t>(Command::read_andx),
                       .request = Reading::number(number)};
  SECTION("pushed data comes first") {
    near.push(0, "hello");
    CHECK(PutOut(near.out).to_lan.size() == 1);
    near.reads.read_through(through, Slice::copy_of(as_bytes("HELLO")));
  }
  SECTION("the server's own answer comes first") {
    near.reads.read_through(through, Slice::copy_of(as_bytes("HELLO")));
    CHECK(PutOut(near.out).to_lan.size() == 1);
    near.push(0, "hello");
  }
  CHECK(PutOut(near.out).to_lan.empty());  // whichever is first counts
  CHECK(near.reads.is_idle());
  CHECK_FALSE(near.connection.pending(number_of(11)));
}

TEST_CASE("SMB1: a READ is answered from pushed data unless something forbids it") {
  Reading near;
  near.push(0, "hello, world");
  bool answered = true;
  SECTION("nothing does") {}
  SECTION("it is switched off") {
    Surroundings surroundings;
    surroundings.features.read_ahead = false;
    near.local.on_surroundings(surroundings);
    answered = false;
  }
  SECTION("the oplock is lost") {
    near.file.oplock = Oplock::none;
    answered = false;
  }
  SECTION("a write of the same file is promised") {
    (void)near.promises.promise(near.file.key, 1_number, {0, 5});
    answered = false;
  }
  SECTION("the file is no longer known") {
    near.reads.forget(near.file.key);
    answered = false;
  }
  CHECK(near.request(0, 5, 11) == answered);
  const PutOut put(near.out);
  CHECK(put.to_lan.size() == (answered ? 1 : 0));
  CHECK(put.all<Used>().size() == (answered ? 1 : 0));
  CHECK(put.passed.empty());
}

TEST_CASE("SMB1: that data is void is reported once until the client reads again") {
  Reading near;
  near.reads.drop(near.file);
  near.reads.drop(near.file);
  CHECK(PutOut(near.out).all<Drop>().size() == 1);
  near.push(0, "hello");  // under the old stamp
  CHECK(near.request(0, 5, 11));
  CHECK(PutOut(near.out).to_lan.empty());
  near.reads.drop(near.file);
  CHECK(PutOut(near.out).all<Drop>().size() == 1);
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
