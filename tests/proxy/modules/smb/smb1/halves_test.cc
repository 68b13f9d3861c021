// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/builders.h"
#include "proxy/modules/smb/smb1/pair.h"

namespace longhaul::smb::smb1::testing {
namespace {

TEST_CASE(
    "SMB1: a file is read without a round trip per block, with an oplock that the client did not request") {
  Pair pair;
  pair.server.files["F"] = some_bytes(1'000'000);
  const Slice opened = pair.ask(create("F", 10));
  const Message reply = parsed(opened);
  CHECK(parse_nt_create_reply(reply.first())->oplock == Oplock::none);
  const std::uint16_t fid = fid_of(opened);
  CHECK(pair.server.handles.at(fid).oplock == 2);
  std::string read_back;
  int here = 0;
  for (;;) {
    auto answer = pair.ask_here(read(fid, read_back.size(), 65000, 11));
    if (answer) ++here;
    pair.run();
    if (!answer) answer = pair.answer();
    REQUIRE(answer);
    REQUIRE(pair.at_client.empty());
    const std::string data = data_of(*answer);
    if (data.empty()) break;
    read_back += data;
  }
  CHECK(read_back == pair.server.files["F"]);
  CHECK(here >= 14);
  CHECK(pair.near.counters().round_trips_saved >= 16);
}

TEST_CASE("SMB1: a READ beyond the end and a short one are answered correctly") {
  Pair pair;
  pair.server.files["F"] = "0123456789";
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  CHECK(data_of(pair.ask(read(fid, 4, 100, 11))) == "456789");
  CHECK(data_of(pair.ask(read(fid, 10, 100, 12))).empty());
  CHECK(data_of(pair.ask(read(fid, 1000, 100, 13))).empty());
  CHECK(data_of(pair.ask(read(fid, 0, 10, 14))) == "0123456789");
}

TEST_CASE("SMB1: a READ that waits while the far half reads far beyond an unknown end is answered") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    Pair pair;
    pair.line(80'000'000);
    pair.server.files["F"] = "";
    const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
    // Only the client knows where the file ends now, and by then the far half reads ahead a megabyte.
    const std::string all = some_bytes(200'000 + random() % 800'000, seed);
    std::uint16_t mid = 11;
    for (std::size_t at = 0; at < all.size(); at += 30'000)
      pair.ask(
          write(fid, at, as_bytes(all).subspan(at, std::min<std::size_t>(30'000, all.size() - at)), mid++));
    for (std::size_t at = 0; at <= all.size(); at += 30'000) {
      pair.client_sends(read(fid, at, 30'000, mid++));
      for (auto steps = random() % 100; steps > 0; --steps)
        random() % 2 ? pair.move_up() : pair.server_answers();
      pair.run_while([&] { return pair.at_client.empty(); });
      REQUIRE(pair.at_client.size() == 1);
      CHECK(data_of(*pair.answer()) == all.substr(at, 30'000));
    }
  }
}

TEST_CASE("SMB1: a READ is answered although the client's other requests use all that the server allows") {
  Pair pair(std::make_shared<LostWrites>(), 1, std::make_shared<LostWrites>(), 4);
  pair.server.files["F"] = some_bytes(300'000);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  pair.run();
  for (std::uint16_t i = 0; i < 3; ++i)  // none of which is answered now
    pair.client_sends(notify_change_request({0x1234, kUid, kTid, static_cast<std::uint16_t>(100 + i), 0x4001},
                                            static_cast<std::uint16_t>(0x9000 + i), 1, 64));
  pair.run();
  CHECK(data_of(pair.ask(read(fid, 200'000, 10'000, 11))) == pair.server.files["F"].substr(200'000, 10'000));
}

TEST_CASE(
    "SMB1: a READ is answered although its file is locked, or may not be read ahead any more, meanwhile") {
  for (const bool locks : {false, true}) {
    Pair pair(std::make_shared<LostWrites>(), 1, std::make_shared<LostWrites>(), 1);
    pair.server.files["F"] = some_bytes(300'000);
    const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
    pair.run();
    pair.server_waits = true;
    pair.client_sends(read(fid, 0, 30'000, 11));
    pair.client_sends(
        read(fid, 200'000, 10'000, 12));  // waits at the far half until the first one is answered
    pair.run();
    if (locks) {
      // Of another tree, so that the near half does not know the file by it.
      pair.client_sends(make_frame({.command = 0x24, .tid = kTid + 1, .uid = kUid, .mid = 13},
                                   Fields{}.andx().u16(fid).u8(0x10).u8(0).u32(0).u16(0).u16(1).bytes,
                                   Buffer(20)));
    } else {
      Surroundings strict;
      strict.line_bytes_per_second = 1'000'000;
      pair.near.on_surroundings(pair.now, strict);
      pair.far.on_surroundings(pair.now, strict);
    }
    pair.server_waits = false;
    pair.run();
    std::map<std::uint16_t, std::string> answers;
    while (const auto answer = pair.answer())
      if (parsed(*answer).header.command == Command::read_andx) answers[mid_of(*answer)] = data_of(*answer);
    CHECK(answers[11] == pair.server.files["F"].substr(0, 30'000));
    CHECK(answers[12] == pair.server.files["F"].substr(200'000, 10'000));
  }
}

// With words that are not there, behind a good header.
Slice unparsable(const Slice& frame) {
  Buffer cut;
  append(cut, frame.bytes().first(kFrameHeadBytes + kHeaderBytes));
  cut.push_back(std::byte{0xFF});
  write_frame_head(cut.size() - kFrameHeadBytes, cut.data());
  return Slice::copy_of(cut);
}

TEST_CASE("SMB1: an unparsable response passes, but one to a request of ours ends the connection") {
  Pair pair;
  pair.server.files["F"] = some_bytes(5'000'000);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  pair.run();
  pair.server_waits = true;
  const bool ours = GENERATE(true, false);
  pair.client_sends(ours ? read(fid, 2'500'000, 10'000, 11) : flush(fid, 11));
  pair.run();
  REQUIRE_FALSE(pair.server.out.empty());
  for (Slice& frame : pair.server.out) {
    CHECK((parsed(frame).header.pid != Head{}.pid) == ours);
    frame = unparsable(frame);
  }
  pair.server_waits = false;
  pair.run();
  CHECK(pair.aborted == ours);
  CHECK(pair.at_client.empty() == ours);
}

TEST_CASE("SMB1: when another client breaks our oplock, promises are kept before the break is answered") {
  Pair pair;
  pair.server.files["F"] = some_bytes(300'000);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  pair.ask(read(fid, 0, 60'000, 11));
  const std::string block(1000, 'x');
  REQUIRE(pair.ask_here(write(fid, 0, as_bytes(block), 12)));
  pair.server_waits = true;
  pair.move_up();
  pair.server.break_oplock("F");
  pair.server_waits = false;
  CHECK_FALSE(pair.server.is_broken("F"));
  pair.run();
  CHECK(pair.at_client.empty());  // the client asked for no oplock and hears of none
  CHECK(pair.server.is_broken("F"));
  CHECK(pair.server.files["F"].substr(0, 1000) == block);
  // From now on others may write: nothing is answered from what was ahead, and nothing early.
  pair.server.files["F"].replace(0, 4, "ELSE");
  CHECK(data_of(pair.ask(read(fid, 0, 4, 13))) == "ELSE");
  CHECK_FALSE(pair.ask_here(write(fid, 0, as_bytes(block), 14)));
  pair.run();
  pair.at_client.clear();
  CHECK(status_of(pair.ask(close(fid, 15))) == 0);
  // And never again for this name.
  pair.ask(create("F", 16));
  CHECK(pair.server.handles.begin()->second.oplock == 0);
}

TEST_CASE("SMB1: a break of the client's own oplock passes, and its acknowledgement waits for promises") {
  Pair pair;
  pair.server.files["F"] = some_bytes(300'000);
  const Slice opened = pair.ask(create("F", 10, {.flags = 2}));
  const Message reply = parsed(opened);
  CHECK(parse_nt_create_reply(reply.first())->oplock == Oplock::exclusive);
  const std::uint16_t fid = fid_of(opened);
  const std::string block(1000, 'x');
  REQUIRE(pair.ask_here(write(fid, 0, as_bytes(block), 11)));
  while (pair.move_up()) {
  }
  pair.server.break_oplock("F");
  std::swap(pair.server.out.front(), pair.server.out.back());  // the break overtakes the write's answer
  pair.server_answers();
  pair.server_waits = true;
  while (pair.move_down()) {
  }
  REQUIRE(pair.at_client.size() == 1);
  CHECK(mid_of(*pair.answer()) == 0xFFFF);
  CHECK_FALSE(pair.ask_here(write(fid, 1000, as_bytes(block), 12)));
  pair.client_sends(oplock_ack(fid, 0));
  while (pair.move_up()) {
  }
  CHECK_FALSE(pair.server.is_broken("F"));
  pair.server_waits = false;
  pair.run();
  CHECK(pair.server.is_broken("F"));
  CHECK(pair.server.files["F"].substr(0, 1000) == block);
}

TEST_CASE("SMB1: reopening a file by the same client costs one round trip, and both opens see the writes") {
  Pair pair;
  pair.server.files["F"] = some_bytes(100'000);
  const std::uint16_t first = fid_of(pair.ask(create("F", 10)));
  const std::string block(1000, 'x');
  REQUIRE(pair.ask_here(write(first, 0, as_bytes(block), 11)));
  const std::uint16_t second = fid_of(pair.ask(create("f", 12)));
  CHECK(data_of(pair.ask(read(second, 0, 1000, 13))) == block);
  const std::string other(1000, 'y');
  pair.ask(write(second, 0, as_bytes(other), 14));
  CHECK(data_of(pair.ask(read(first, 0, 1000, 15))) == other);
}

TEST_CASE("SMB1: rename and delete of an open file by path do not wait for the return of our oplock") {
  const std::uint8_t command = GENERATE(as<std::uint8_t>{}, 0x06, 0x07, 0xA5);
  Pair pair;
  pair.server.files["F"] = some_bytes(100);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  CHECK(data_of(pair.ask(read(fid, 0, 100, 11))).size() == 100);
  Fields words, bytes;
  words.u16(0x16);
  if (command == 0xA5) words.u16(0x104).u32(0);
  bytes.u8(4).text("\\F").u8(0);
  if (command != 0x06) bytes.u8(4).text("\\G").u8(0);
  pair.client_sends(
      make_frame({.command = command, .tid = kTid, .uid = kUid, .mid = 12}, words.bytes, bytes.bytes));
  while (pair.move_up()) {
  }
  pair.server.break_oplock("F");
  while (pair.server_answers()) {
  }
  CHECK(pair.server.is_broken("F"));
}

TEST_CASE("SMB1: CLOSE is answered locally under a batch oplock if no promise is outstanding") {
  Pair pair;
  pair.server.files["F"] = some_bytes(100);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  CHECK(data_of(pair.ask(read(fid, 0, 100, 11))).size() == 100);
  const auto answer = pair.ask_here(close(fid, 12));
  REQUIRE(answer);
  CHECK(status_of(*answer) == 0);
  pair.run();
  CHECK(pair.at_client.empty());
  CHECK(pair.server.handles.empty());
  // The FID comes back with the next open.
  CHECK(fid_of(pair.ask(create("F", 13))) == fid);
  CHECK(pair.near.quiet());
  CHECK(pair.far.quiet());
}

TEST_CASE("SMB1: a request that closes a file is sent once the server has answered our READs of it") {
  const std::uint8_t command = GENERATE(as<std::uint8_t>{}, 0x04, 0x71, 0x74);
  Pair pair;
  pair.server.files["F"] = some_bytes(1'000'000);
  pair.client_sends(create("F", 10));
  while (pair.move_up()) {
  }
  pair.server_answers();  // from here on the file is read ahead
  while (pair.move_down()) {
  }
  const std::uint16_t fid = fid_of(*pair.answer());
  REQUIRE(pair.server.seen[kRead] > 0);
  REQUIRE_FALSE(pair.server.out.empty());
  pair.server_waits = true;
  pair.client_sends(command == 0x04 ? close(fid, 11)
                                    : make_frame({.command = command, .tid = kTid, .uid = kUid, .mid = 11},
                                                 command == 0x74 ? Fields{}.andx().bytes : Buffer{}, {}));
  while (pair.move_up()) {
  }
  CHECK(pair.server.seen[command] == 0);
  const int reads = pair.server.seen[kRead];
  pair.server_waits = false;
  pair.run();
  CHECK(pair.server.seen[command] == 1);
  CHECK(pair.server.seen[kRead] == reads);
  CHECK(pair.at_client.size() == 1);
}

TEST_CASE("SMB1: a file that was closed locally and is reopened at once is accelerated as before") {
  Pair pair;
  pair.server.files["F"] = some_bytes(300'000);
  std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  pair.ask(read(fid, 0, 20'000, 11));
  REQUIRE(pair.ask_here(close(fid, 12)));
  fid = fid_of(pair.ask(create("F", 13)));  // the CLOSE is still on its way
  CHECK(pair.server.handles.at(fid).oplock == 2);
  for (std::uint64_t at = 0; at < 300'000; at += 20'000) {
    auto answer = pair.ask_here(read(fid, at, 20'000, 14));
    CHECK((answer || at == 0));
    pair.run();
    if (!answer) answer = pair.answer();
    REQUIRE(answer);
    CHECK((data_of(*answer) == pair.server.files["F"].substr(at, 20'000)));
  }
}

TEST_CASE("SMB1: signed sessions are not accelerated") {
  Pair pair;
  pair.server.files["F"] = some_bytes(100);
  Slice frame = create("F", 10);
  Buffer copy;
  append(copy, frame.bytes());
  copy[4 + 10] |= std::byte{4};
  pair.client_sends(Slice::copy_of(copy));
  pair.run();
  REQUIRE(pair.at_client.size() == 1);
  CHECK(pair.server.handles.begin()->second.oplock == 0);
  CHECK(pair.near.reason() == smb::reasons::smb_signed);
  // They stay, for what the client may have to be told.
  CHECK(pair.near.leave_alone() == smb::reasons::optimised);
  CHECK(pair.far.leave_alone() == smb::reasons::optimised);
  CHECK(pair.far.counters().injected == 0);
}

TEST_CASE("SMB1: with its features off nothing is answered early and nothing is added") {
  Pair pair;
  Surroundings surroundings;
  surroundings.features.read_ahead = surroundings.features.write_behind =
      surroundings.features.metadata = false;
  pair.near.on_surroundings(pair.now, surroundings);
  pair.far.on_surroundings(pair.now, surroundings);
  pair.server.files["F"] = some_bytes(100'000);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  CHECK_FALSE(pair.ask_here(read(fid, 0, 1000, 11)));
  CHECK(data_of(pair.only_answer()).size() == 1000);
  CHECK_FALSE(pair.ask_here(write(fid, 0, as_bytes("x"), 12)));
  pair.only_answer();
  CHECK_FALSE(pair.ask_here(close(fid, 13)));
  pair.only_answer();
  CHECK(pair.far.counters().injected == 0);
  CHECK(pair.server.seen[kRead] == 1);
  CHECK(pair.server.seen[kWrite] == 1);
}

TEST_CASE("SMB1: relaxed, a change beside the server is seen within ten seconds in a file that stays open") {
  using namespace std::chrono_literals;
  Pair pair;
  pair.server.files["F"] = "0123456789";
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  CHECK(data_of(pair.ask(read(fid, 0, 100, 11))) == "0123456789");
  pair.server.files["F"] = "0123ABCDEFGH";
  pair.pass(9s);
  CHECK(data_of(pair.ask(read(fid, 0, 100, 12))) == "0123456789");  // nobody looks
  pair.pass(1s + 1ms);
  CHECK(data_of(pair.ask(read(fid, 0, 100, 13))) == "0123ABCDEFGH");
  CHECK(pair.ask_here(read(fid, 0, 100, 14)).has_value());  // it is kept again
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
