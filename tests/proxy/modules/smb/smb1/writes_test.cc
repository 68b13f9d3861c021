// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/pair.h"

namespace longhaul::smb::smb1::testing {
namespace {

TEST_CASE("SMB1: writes are acknowledged locally, and all are in the file when CLOSE is answered") {
  Pair pair;
  const std::string content = some_bytes(500'000);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
  pair.server_waits = true;
  std::size_t at = 0, here = 0;
  for (; at < content.size(); at += 50'000) {
    // The same MID again and again, as some clients do.
    auto answer = pair.ask_here(write(fid, at, as_bytes(content).subspan(at, 50'000), 11, 8));
    if (!answer) {
      pair.server_waits = false;
      pair.run();
      pair.server_waits = true;
      answer = pair.answer();
    } else {
      ++here;
    }
    REQUIRE(answer);
    REQUIRE(status_of(*answer) == 0);
    const Message message = parsed(*answer);
    REQUIRE(parse_write_reply(message.first())->count == 50'000);
  }
  CHECK(here == 10);
  pair.client_sends(close(fid, 12));
  while (pair.move_up()) {
  }
  CHECK(pair.server.seen[kClose] == 0);  // held until the writes are answered
  pair.server_waits = false;
  CHECK(status_of(pair.only_answer()) == 0);
  CHECK(pair.server.seen[kClose] == 1);
  CHECK(pair.server.files["F"] == content);
  CHECK(pair.near.audit().made == 10);
  CHECK(pair.near.audit().kept == 10);
  CHECK(pair.near.audit().adds_up());
}

TEST_CASE("SMB1: a client that requests its own oplocks gets promises only if the operator allows it") {
  Pair pair;
  Surroundings surroundings;
  pair.near.on_surroundings(pair.now, surroundings);
  pair.far.on_surroundings(pair.now, surroundings);
  constexpr std::uint32_t kBatch = 0x06;
  const std::uint16_t own = fid_of(pair.ask(create("OWN", 10, {.flags = kBatch, .disposition = 5})));
  for (std::uint16_t mid = 11; mid < 14; ++mid) {
    CHECK_FALSE(pair.ask_here(write(own, 0, as_bytes("hello"), mid)));
    CHECK(status_of(pair.only_answer()) == 0);
  }
  CHECK(pair.near.counters().promises_made == 0);
  CHECK(pair.near.counters().unpromised_files == 1);
  CHECK(pair.near.reason() == smb::reasons::smb_client_caches);
  const std::uint16_t on_behalf = fid_of(pair.ask(create("F", 14, {.disposition = 5})));
  CHECK(pair.ask_here(write(on_behalf, 0, as_bytes("hello"), 15)));
}

TEST_CASE("SMB1: FLUSH waits for the server, also for an empty file") {
  Pair pair;
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
  CHECK_FALSE(pair.ask_here(flush(fid, 11)));
  CHECK(status_of(pair.only_answer()) == 0);
  CHECK(pair.near.counters().promises_made == 0);
}

TEST_CASE("SMB1: a write that may exceed a file system's limit waits for the server") {
  Pair pair;
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
  pair.server.keeps_data = false;
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 31;
  const std::string data = some_bytes(1000);
  const auto is_promised = [&](std::uint64_t end) {
    const bool early = pair.ask_here(write(fid, end - data.size(), as_bytes(data), 11)).has_value();
    if (!early) CHECK(status_of(pair.only_answer()) == 0);
    pair.run();
    return early;
  };
  CHECK(is_promised(kLimit - 65536));
  CHECK_FALSE(is_promised(kLimit));
  CHECK(is_promised(kLimit + 1000));
}

TEST_CASE("SMB1: a late error is returned with every later answer of its open") {
  constexpr auto kLost = static_cast<std::uint32_t>(Status::lost_writebehind_data);
  Pair pair;
  const std::string block = some_bytes(1000);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
  pair.server.failing_writes[1000] = kStatusDiskFull;
  REQUIRE(pair.ask_here(write(fid, 0, as_bytes(block), 11)));
  REQUIRE(pair.ask_here(write(fid, 1000, as_bytes(block), 11)));
  SECTION("a reset where only CLOSE could tell") {
    pair.run();
    pair.at_client.clear();
    pair.client_sends(close(fid, 12));
    pair.run();
    CHECK(pair.at_client.empty());
    CHECK(pair.server.handles.empty());
    CHECK(pair.aborted);
  }
  SECTION("FLUSH") {
    CHECK(status_of(pair.ask(flush(fid, 12))) == kLost);
    CHECK(status_of(pair.ask(close(fid, 13))) == kLost);
    CHECK_FALSE(pair.aborted);
  }
  SECTION("WRITE, after which nothing is answered early") {
    pair.run();
    pair.client_sends(write(fid, 2000, as_bytes(block), 12));
    CHECK(pair.at_client.empty());
    CHECK(status_of(pair.only_answer()) == kLost);
    CHECK(status_of(pair.ask(close(fid, 13))) == kLost);
    CHECK_FALSE(pair.aborted);
  }
  CHECK(pair.near.audit().failed == 1);
  CHECK(pair.near.audit().reported == 1);
}

TEST_CASE("SMB1: jcifs gets no promises") {
  Pair pair;
  const bool is_jcifs = GENERATE(true, false);
  pair.ask(session_setup(9, is_jcifs ? "jCIFS" : "another"));
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
  CHECK(pair.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 11)).has_value() == !is_jcifs);
  CHECK(pair.near.reason() == (is_jcifs ? smb::reasons::smb_hides_errors : smb::reasons::optimised));
}

TEST_CASE("SMB1: if the server ends with promises outstanding, the client is reset, never closed cleanly") {
  Pair pair;
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
  pair.server_waits = true;
  REQUIRE(pair.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 11)));
  SECTION("before they are sent") {
    pair.far.lan_ended(pair.now, modules::Ending::closed);
    pair.client_sends(flush(fid, 12));  // lets what was put out come
    pair.run();
    CHECK((pair.aborted || !pair.client_ended));
  }
  SECTION("while they are there") {
    while (pair.move_up()) {
    }
    pair.far.lan_ended(pair.now, modules::Ending::closed);
    pair.client_sends(flush(fid, 12));
    CHECK(pair.aborted);
  }
}

TEST_CASE("SMB1: the client's end reaches the server only after all promises are kept") {
  Pair pair;
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
  pair.server_waits = true;
  REQUIRE(pair.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 11)));
  pair.near.lan_ended(pair.now, modules::Ending::closed);
  pair.client_sends(flush(fid, 12));
  while (pair.move_up()) {
  }
  CHECK_FALSE(pair.server_ended);
  pair.server_waits = false;
  pair.run();
  CHECK(pair.server_ended);
  CHECK(pair.server.files["F"].size() == 100);
}

TEST_CASE("SMB1: an early CLOSE of a written file that the server refuses resets, and is on record") {
  const auto lost = std::make_shared<LostWrites>(1), far = std::make_shared<LostWrites>();
  const LostWrites::File file{.ends = {.client = {std::byte{1}}}, .share = u"T", .path = u"F"};
  const bool near_fails = GENERATE(false, true);
  {
    Pair pair(lost, 1, far);
    const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
    REQUIRE(pair.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 11)));
    REQUIRE(status_of(pair.ask(flush(fid, 12))) == 0);
    pair.server.refused[kClose] = kStatusDiskFull;
    REQUIRE(pair.ask_here(close(fid, 13)));
    if (near_fails) {  // before it hears of the error
      while (pair.move_up() || pair.server_answers()) {
      }
      pair.far.twin_lost();
      CHECK(far->has_record(file));
    } else {
      pair.run();
      CHECK(pair.aborted);
      CHECK(lost->has_record(file));
    }
  }
  Pair pair(near_fails ? std::make_shared<LostWrites>(2) : lost, 1, far);
  pair.server.files["F"] = "old";
  CHECK(status_of(pair.ask(create("F", 20))) == static_cast<std::uint32_t>(Status::lost_writebehind_data));
}

TEST_CASE("SMB1: a file that was only read has lost nothing when its early CLOSE fails") {
  const auto lost = std::make_shared<LostWrites>(1);
  Pair pair(lost);
  pair.server.files["F"] = some_bytes(100);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  pair.server.refused[kClose] = kStatusDiskFull;
  REQUIRE(pair.ask_here(close(fid, 11)));
  pair.run();
  CHECK(pair.aborted);
  CHECK(lost->waiting() == 0);
}

TEST_CASE("SMB1: FLUSH of all files waits for all that is promised, and tells of what was lost") {
  Pair pair;
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
  const bool fails = GENERATE(false, true);
  if (fails) pair.server.failing_writes[0] = kStatusDiskFull;
  pair.server_waits = true;
  REQUIRE(pair.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 11)));
  pair.client_sends(flush(0xFFFF, 12));
  while (pair.move_up()) {
  }
  CHECK(pair.server.seen[0x05] == 0);
  pair.server_waits = false;
  const auto told = static_cast<std::uint32_t>(fails ? Status::lost_writebehind_data : Status::success);
  CHECK(status_of(pair.only_answer()) == told);
  CHECK(pair.near.audit().unreported == 0);
  CHECK_FALSE(pair.aborted);
}

TEST_CASE(
    "SMB1: no request that closes a file succeeds for its client before the reset that reports a loss") {
  const auto lost = std::make_shared<LostWrites>(1);
  Pair pair(lost);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
  pair.server.failing_writes[0] = kStatusDiskFull;
  REQUIRE(pair.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 11)));
  const std::uint8_t command = GENERATE(as<std::uint8_t>{}, 0x2C, 0x11, 0x71, 0x74);
  pair.client_sends(command == 0x2C ? write_and_close(fid, 100, as_bytes(some_bytes(10)), 12)
                                    : make_frame({.command = command, .tid = kTid, .uid = kUid, .mid = 12},
                                                 command == 0x74 ? Fields{}.andx().bytes : Buffer{}, {}));
  pair.run();
  CHECK(pair.server.seen[command] == 1);
  CHECK(pair.at_client.empty());
  CHECK(pair.aborted);
  CHECK(lost->waiting() == 1);
  CHECK(pair.near.audit().adds_up());
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
