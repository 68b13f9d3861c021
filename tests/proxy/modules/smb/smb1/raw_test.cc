// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/pair.h"

namespace longhaul::smb::smb1::testing {
namespace {

std::string text_of(const Slice& frame) { return std::string(as_text(frame.bytes().subspan(4))); }

TEST_CASE("SMB1: a raw read goes only to the server, and later requests are accelerated as before") {
  Pair pair;
  pair.server.files["F"] = some_bytes(500'000);
  const std::string& file = pair.server.files["F"];
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  CHECK(data_of(pair.ask(read(fid, 0, 50'000, 11))) == file.substr(0, 50'000));
  CHECK(text_of(pair.ask(read_raw(fid, 100, 60'000, 12))) == file.substr(100, 60'000));
  const int before = pair.server.seen[kRead];
  CHECK(data_of(*pair.ask_here(read(fid, 50'000, 50'000, 13))) == file.substr(50'000, 50'000));
  pair.run();
  CHECK(pair.server.seen[kRead] >= before);
  CHECK(pair.near.leave_alone() == smb::reasons::optimised);
  CHECK(pair.far.leave_alone() == smb::reasons::optimised);
  CHECK(text_of(pair.ask(read_raw(fid, 500'000, 1000, 14))).empty());  // at the end
  CHECK(status_of(*pair.ask_here(close(fid, 15))) == 0);
}

TEST_CASE("SMB1: the data of a raw read passes whatever it looks like") {
  Pair pair;
  const Slice looks = create("G", 99);
  const std::string data(as_text(looks.bytes().subspan(4)));
  pair.server.files["F"] = data;
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  CHECK(text_of(pair.ask(read_raw(fid, 0, static_cast<std::uint16_t>(data.size()), 11))) == data);
  CHECK(pair.server.handles.size() == 1);
  CHECK(text_of(pair.ask(read_raw(fid, 0, 3, 12))) == data.substr(0, 3));
}

TEST_CASE("SMB1: a raw read waits for promises, and a break that arrives before its data passes") {
  Pair pair;
  pair.server.files["F"] = std::string(100'000, 'a');
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.flags = 6})));
  const std::string block(1000, 'b');
  REQUIRE(pair.ask_here(write(fid, 0, as_bytes(block), 11)));
  pair.client_sends(read_raw(fid, 0, 1000, 12));
  while (pair.move_up()) {
  }
  CHECK(pair.server.seen[0x1A] == 0);  // the WRITE's answer has not come
  pair.server.break_oplock("F");
  pair.run();
  // In whichever order they come: the break, and the data.
  REQUIRE(pair.at_client.size() == 2);
  std::string got;
  for (const Slice& frame : pair.at_client) {
    if (!parse_message(frame.bytes().subspan(4))) got = text_of(frame);
  }
  CHECK(got == block);
  pair.at_client.clear();
  pair.client_sends(oplock_ack(fid, 0));
  pair.run();
  CHECK(pair.server.is_broken("F"));
}

TEST_CASE("SMB1: a raw write invalidates the file's cached data, and nothing separates it from its data") {
  const bool through = GENERATE(false, true);
  Pair pair;
  pair.server.files["F"] = std::string(300'000, 'a');
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  CHECK(data_of(pair.ask(read(fid, 0, 50'000, 11))) == std::string(50'000, 'a'));
  const Slice go_ahead = pair.ask(write_raw(fid, 10, 2000, through ? 1 : 0, 12));
  CHECK(parsed(go_ahead).header.command == Command::write_raw);
  CHECK(pair.server.expects_data());
  SECTION("plain data") {}
  SECTION("a break in between is answered afterwards") {
    pair.server.break_oplock("F");
    pair.run();
    CHECK(pair.server.expects_data());
    CHECK(pair.at_client.empty());
    CHECK_FALSE(pair.server.is_broken("F"));
  }
  // The data look like a message.
  std::string data(2000, 'b');
  const Slice looks = close(fid, 1);
  data.replace(0, looks.size() - 4, as_text(looks.bytes().subspan(4)));
  pair.client_sends(bare(data));
  pair.run();
  CHECK(pair.at_client.size() == (through ? 1u : 0u));
  pair.at_client.clear();
  CHECK(pair.server.files["F"].substr(10, 2000) == data);
  CHECK(data_of(pair.ask(read(fid, 0, 3000, 13))) == pair.server.files["F"].substr(0, 3000));
  CHECK_FALSE(pair.ask_here(close(fid, 14)));  // it could tell an error of the raw write
  CHECK(status_of(pair.only_answer()) == 0);
  CHECK(pair.near.quiet());
  CHECK(pair.far.quiet());
}

TEST_CASE("SMB1: a raw write that the server refuses ends with that answer") {
  Pair pair;
  pair.server.files["F"] = some_bytes(300'000);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  CHECK(status_of(pair.ask(write_raw(0x7777, 0, 2000, 0, 11))) == 0xC0000008);
  CHECK(data_of(pair.ask(read(fid, 0, 3000, 12))) == pair.server.files["F"].substr(0, 3000));
  CHECK(pair.far.quiet());
}

TEST_CASE("SMB1: multiplexed transfers pass, and other requests stay accelerated") {
  Pair pair;
  pair.server.files["F"] = some_bytes(300'000);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  for (const Command command : {Command::read_mpx, Command::write_mpx}) {
    const Slice frame =
        make_frame({.command = static_cast<std::uint8_t>(command), .tid = kTid, .uid = kUid, .mid = 11},
                   Fields{}.u16(fid).u32(0).u16(100).u64(0).u64(0).bytes, {});
    CHECK(status_of(pair.ask(frame)) == 0xC00000BB);  // as servers say over TCP
  }
  CHECK(data_of(pair.ask(read(fid, 0, 3000, 12))) == pair.server.files["F"].substr(0, 3000));
  CHECK(pair.ask_here(read(fid, 3000, 3000, 13)));
  CHECK(pair.near.leave_alone() == smb::reasons::optimised);
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
