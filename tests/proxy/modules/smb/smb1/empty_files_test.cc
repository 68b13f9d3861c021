// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/pair.h"

namespace longhaul::smb::smb1::testing {
namespace {

constexpr std::uint8_t kFlush = 0x05, kTrans2 = 0x32;  // commands
constexpr std::uint32_t kDiskFull = 0xC000007F;
constexpr CreateOptions kAnew{.flags = 2, .access = 0x40000000, .disposition = 5};

TEST_CASE("SMB1: what leaves an empty file empty is answered here, and done in order") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    Pair pair;
    pair.server.files["F"] = "of before";
    const std::uint16_t fid = fid_of(pair.ask(create("F", 10, kAnew)));
    pair.server_waits = true;
    const auto asked_before = pair.server.seen[kTrans2];
    for (const Slice& frame : {flush(fid, 11), set_end_of_file(fid, 0, 12, seed % 2 ? 0x104 : 1020),
                               set_times(fid, 5, 13), write(fid, 0, as_bytes("hello"), 14)}) {
      const auto answer = pair.ask_here(frame);
      REQUIRE(answer);
      CHECK(status_of(*answer) == 0);
    }
    pair.run_random(random, 20);
    pair.client_sends(close(fid, 15));
    pair.run_random(random, 20);
    CHECK(pair.at_client.empty());
    pair.server_waits = false;
    CHECK(status_of(pair.only_answer()) == 0);
    CHECK(pair.server.files["F"] == "hello");
    CHECK(pair.server.seen[kFlush] == 1);
    CHECK(pair.server.seen[kTrans2] == asked_before + 2);
    CHECK(pair.near.audit().made == 4);
    CHECK(pair.near.audit().kept == 4);
    CHECK(pair.near.quiet());
  }
}

TEST_CASE("SMB1: SET_FILE_INFORMATION is answered as servers do") {
  Pair pair;
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, kAnew)));
  const auto answer = pair.ask_here(set_end_of_file(fid, 0, 11));
  REQUIRE(answer);
  const Message message = parsed(*answer);
  const auto part = parse_transaction(message, message.first());
  REQUIRE(part.has_value());
  CHECK(part->is_whole());
  CHECK(part->data.empty());
  using namespace std::string_literals;
  CHECK(as_text(part->parameters) == "\0\0"s);  // [MS-CIFS] 2.2.6.9.2, EaErrorOffset
}

TEST_CASE("SMB1: what may matter to somebody goes to the server") {
  Pair pair;
  pair.server.files["FULL"] = "12345";
  CreateOptions how = kAnew;
  std::string name = "F";
  std::function<Slice(std::uint16_t fid)> asks = [](std::uint16_t fid) { return flush(fid, 20); };
  std::function<void(std::uint16_t fid)> first = [](std::uint16_t) {};
  SECTION("the file has bytes") {
    name = "FULL";
    how.disposition = 1;
  }
  SECTION("there is no oplock") { pair.server.refuses_oplocks = true; }
  SECTION("it was written to") {
    first = [&](std::uint16_t fid) { pair.ask(write(fid, 0, as_bytes("1"), 11)); };
  }
  SECTION("it was made longer, and then is made shorter") {
    first = [&](std::uint16_t fid) { pair.ask(set_end_of_file(fid, 1, 11)); };
    asks = [](std::uint16_t fid) { return set_end_of_file(fid, 0, 20); };
  }
  SECTION("attributes are set") {
    asks = [](std::uint16_t fid) { return set_times(fid, 5, 20, 1); };
  }
  SECTION("a time that no server takes is set") {
    asks = [](std::uint16_t fid) { return set_times(fid, ~2ull, 20); };
  }
  SECTION("times may not be set") {
    how.access = 0x2;
    asks = [](std::uint16_t fid) { return set_times(fid, 5, 20); };
  }
  SECTION("opened for write-through") { how.options = 2; }
  SECTION("the oplock was taken back") {
    first = [&](std::uint16_t) {
      pair.server.break_oplock("F");
      pair.run();
      pair.at_client.clear();
    };
  }
  SECTION("FLUSH behind something promised") {
    first = [&](std::uint16_t fid) {
      pair.server_waits = true;
      CHECK(pair.ask_here(set_end_of_file(fid, 0, 11)));
    };
  }
  SECTION("the server has refused such before") {
    const std::uint16_t before = fid_of(pair.ask(create("BEFORE", 30, kAnew)));
    pair.server.refused[kFlush] = kDiskFull;
    pair.ask(flush(before, 31));
    pair.run();
    pair.server.refused.clear();
  }
  SECTION("every file is meant") {
    asks = [](std::uint16_t) { return flush(0xFFFF, 20); };
  }
  const std::uint16_t fid = fid_of(pair.ask(create(name, 10, how)));
  first(fid);
  pair.run();
  const auto promised = pair.near.audit().made;
  CHECK_FALSE(pair.ask_here(asks(fid)));
  pair.server_waits = false;
  CHECK(status_of(pair.only_answer()) == 0);
  CHECK(pair.near.audit().made == promised);
}

TEST_CASE("SMB1: what fails of it is told with the next answer that can carry it, once") {
  Pair pair;
  const bool flushed = GENERATE(false, true);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, kAnew)));
  pair.server.refused[flushed ? kFlush : kTrans2] = kDiskFull;
  CHECK(status_of(pair.ask(flushed ? flush(fid, 11) : set_times(fid, 5, 11))) == 0);
  pair.server.refused.clear();
  SECTION("WRITE") {
    CHECK(status_of(pair.ask(write(fid, 0, as_bytes("1"), 12))) == kDiskFull);
    CHECK(status_of(pair.ask(close(fid, 13))) == 0);
  }
  SECTION("CLOSE") { CHECK(status_of(pair.ask(close(fid, 13))) == kDiskFull); }
  CHECK(pair.near.audit().failed == 1);
  CHECK(pair.near.audit().reported == 1);
}

TEST_CASE("SMB1: a reset with nothing but a FLUSH and a size of 0 outstanding has robbed a file of nothing") {
  const bool times = GENERATE(false, true);
  const auto lost = std::make_shared<LostWrites>();
  {
    Pair pair(lost);
    const std::uint16_t fid = fid_of(pair.ask(create("F", 10, kAnew)));
    pair.server_waits = true;
    REQUIRE(pair.ask_here(flush(fid, 11)));
    REQUIRE(pair.ask_here(set_end_of_file(fid, 0, 12)));
    if (times) REQUIRE(pair.ask_here(set_times(fid, 5, 13)));
    pair.near.stream_ended(pair.now, modules::Ending::reset);
  }
  Pair again(lost);
  again.server.files["F"] = "";
  CHECK((status_of(again.ask(create("F", 10, {.access = 3}))) != 0) == times);
}

TEST_CASE("SMB1: the number of a file that is made anew is asked with its open, though it is asked by path") {
  Pair pair;
  const Trans2Limits as_linux{.parameters = 2, .data = 4000};
  pair.ask(create("F", 10, kAnew));
  pair.server_waits = true;
  const auto answer = pair.ask_here(query_path("\\F", 1006, 11, as_linux));
  REQUIRE(answer);
  CHECK(status_of(*answer) == 0);
  // Of a file that keeps its bytes it is not, until it was asked once.
  pair.server_waits = false;
  pair.server.files["G"] = "12345";
  for (const bool again : {false, true}) {
    const std::uint16_t fid = fid_of(pair.ask(create("G", 20, {.flags = 2, .access = 3})));
    const bool here = pair.ask_here(query_path("\\G", 1006, 21, as_linux)).has_value();
    if (!here) pair.only_answer();
    CHECK(here == again);
    pair.ask(close(fid, 22));
  }
}

TEST_CASE("SMB1: letters of a name count where the client says so") {
  Pair pair;
  pair.ask(create("f", 10, kAnew));
  const Trans2Limits as_linux{.parameters = 2, .data = 4000};
  CHECK_FALSE(pair.ask_here(query_path("\\F", 1006, 11, as_linux)));
  pair.only_answer();
  CHECK(pair.ask_here(query_path("\\f", 1006, 12, as_linux)));
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
