// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/pair.h"

namespace longhaul::smb::smb1::testing {
namespace {

TEST_CASE("SMB1: an open of a file whose promised writes a reset has lost gets the error, once") {
  const auto lost = std::make_shared<LostWrites>();
  const auto rob = [&lost](auto&& end) {
    Pair pair(lost);
    const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
    const std::uint16_t other = fid_of(pair.ask(create("G", 11, {.disposition = 5})));
    REQUIRE(pair.ask_here(write(other, 0, as_bytes(some_bytes(100)), 12)));
    REQUIRE(status_of(pair.ask(flush(other, 13))) == 0);
    pair.server_waits = true;
    REQUIRE(pair.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 14)));
    end(pair);
    CHECK(pair.near.audit().outstanding == 0);
  };
  const auto reset = [](Pair& pair) { pair.near.stream_ended(pair.now, modules::Ending::reset); };
  const auto opens = [](Pair& pair, std::string_view name, CreateOptions options = {}) {
    return status_of(pair.ask(create(name, 20, options)));
  };
  constexpr auto kTold = static_cast<std::uint32_t>(Status::lost_writebehind_data);
  SECTION("when it opens the file to write") {
    rob(reset);
    Pair pair(lost);
    pair.server.files["F"] = pair.server.files["G"] = "";
    CHECK(opens(pair, "G") == 0);
    CHECK(opens(pair, "F", {.access = 1}) == kTold);  // it would read old bytes
    CHECK(opens(pair, "F", {.access = 1}) == 0);
    // It may be another file on a case-sensitive share.
    CHECK(opens(pair, "f", {.disposition = GENERATE(1u, 3u)}) == kTold);
    CHECK(opens(pair, "f") == 0);
    CHECK(opens(pair, "F", {.disposition = GENERATE(1u, 3u)}) == kTold);
    CHECK(opens(pair, "F") == 0);
  }
  SECTION("also when the server has ended the connection, or the client itself") {
    rob([how = GENERATE(0, 1)](Pair& pair) {
      if (how == 0) pair.near.stream_ended(pair.now, modules::Ending::closed);
      if (how == 1) pair.near.lan_ended(pair.now, modules::Ending::reset);
    });
    Pair pair(lost);
    pair.server.files["F"] = "";
    CHECK(opens(pair, "F") == kTold);
  }
  SECTION("not when it replaces the file, nor afterwards") {
    rob(reset);
    Pair pair(lost);
    CHECK(opens(pair, "F", {.disposition = 5}) == 0);
    CHECK(opens(pair, "F") == 0);
  }
  SECTION("and no other client") {
    rob(reset);
    Pair pair(lost, 2);
    pair.server.files["F"] = "";
    CHECK(opens(pair, "F") == 0);
  }
}

TEST_CASE("SMB1: a promise lost with its near proxy is reported through another proxy, not the same one") {
  constexpr auto kTold = static_cast<std::uint32_t>(Status::lost_writebehind_data);
  const auto far = std::make_shared<LostWrites>();
  const auto doubtful = GENERATE(false, true);
  {
    Pair pair(std::make_shared<LostWrites>(1), 1, far);
    const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
    REQUIRE(pair.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 11)));
    pair.run();
    pair.now += std::chrono::seconds(3);
    pair.near.on_timeout(pair.now);
    REQUIRE(status_of(pair.ask(flush(fid, 15))) == 0);
    // Nothing more is promised until a WRITE has been answered by the server.
    REQUIRE_FALSE(pair.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 12)));
    if (doubtful) {
      pair.run();
      pair.at_client.clear();
      REQUIRE(pair.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 13)));
    }
    pair.far.twin_lost();
  }
  CHECK(far->waiting() == (doubtful ? 1 : 0));
  const std::uint64_t near = GENERATE(1u, 2u);
  Pair pair(std::make_shared<LostWrites>(near), 1, far);
  pair.server.files["F"] = "";
  CHECK(status_of(pair.ask(create("F", 20, {}))) == (doubtful && near == 2 ? kTold : 0));
  CHECK(status_of(pair.ask(create("F", 21, {}))) == 0);
  CHECK(far->waiting() == 0);
}

TEST_CASE("SMB1: an open waits for what an older connection of its client owes of the file") {
  constexpr auto kTold = static_cast<std::uint32_t>(Status::lost_writebehind_data);
  const auto lost = std::make_shared<LostWrites>(1), far = std::make_shared<LostWrites>();
  Pair old(lost, 1, far), next(lost, 1, far);
  next.server.files["F"] = next.server.files["G"] = "old";
  const std::string content = some_bytes(100);
  const std::uint16_t fid = fid_of(old.ask(create("F", 10, {.disposition = 5})));
  old.server_waits = true;
  REQUIRE(old.ask_here(write(fid, 0, as_bytes(content), 11)));
  CHECK(status_of(next.ask(create("G", 20))) == 0);
  const bool replaces = GENERATE(false, true);
  next.client_sends(create("F", 21, {.disposition = replaces ? 5u : 1u}));
  next.client_sends(create("G", 22));
  const auto passes = [&](modules::Duration time) {
    next.pass(time);
    next.run();
  };
  passes(std::chrono::seconds(4));
  CHECK(next.at_client.empty());
  std::uint32_t expected = replaces ? 0 : kTold;
  SECTION("it is written") {
    old.server_waits = false;
    old.run();
    CHECK(old.server.files["F"] == content);
    passes(std::chrono::milliseconds(50));
    expected = 0;
    CHECK(lost->waiting() == 0);
    CHECK_FALSE(old.aborted);
    // Nothing is promised through the older one any more.
    CHECK_FALSE(old.ask_here(write(fid, 0, as_bytes(content), 12)));
  }
  SECTION("the server ends the older connection") {
    old.near.stream_ended(old.now, modules::Ending::reset);
    passes(std::chrono::milliseconds(50));
  }
  SECTION("the server says nothing more") {
    passes(std::chrono::seconds(2));
    old.pass(std::chrono::milliseconds(1));
    CHECK(old.aborted);
    CHECK(lost->events().counters().lost[static_cast<std::size_t>(Cause::server_gone)] == 1);
  }
  REQUIRE(next.at_client.size() == 2);
  const Slice first = *next.answer();
  CHECK(mid_of(first) == 21);
  CHECK(status_of(first) == expected);
  CHECK(status_of(*next.answer()) == 0);
}

TEST_CASE(
    "SMB1: a far half that loses an oplock without the near half's word sends no promised WRITE any more") {
  const auto far = std::make_shared<LostWrites>();
  Pair pair(std::make_shared<LostWrites>(1), 1, far);
  const std::string content = some_bytes(100);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
  REQUIRE(pair.ask_here(write(fid, 0, as_bytes(content), 11)));  // it does not come to the far half
  pair.server.break_oplock("F");
  while (pair.server_answers()) {
  }
  pair.pass(std::chrono::seconds(24));
  CHECK_FALSE(pair.aborted);
  CHECK_FALSE(pair.server.is_broken("F"));
  SECTION("the near half is heard in time") {
    pair.run();
    CHECK(pair.server.is_broken("F"));
    CHECK(pair.server.files["F"] == content);
    pair.pass(std::chrono::seconds(5));
    CHECK_FALSE(pair.aborted);
    CHECK(far->waiting() == 0);
  }
  SECTION("it is not") {
    pair.pass(std::chrono::seconds(1));
    CHECK(pair.aborted);
    CHECK(pair.server.files["F"].empty());
    CHECK(far->waiting() == 1);
  }
}

TEST_CASE("SMB1: a record of lost writes follows its file") {
  const auto lost = std::make_shared<LostWrites>(), far = std::make_shared<LostWrites>();
  const auto& half = GENERATE(false, true) ? far : lost;
  Pair pair(lost, 1, far);
  const LostWrites::Ends ends{.client = {std::byte{1}}};
  half->add({.ends = ends, .share = u"T", .path = u"F"}, {.cause = Cause::server_gone});
  const auto changes = [&](std::uint8_t command, const Buffer& words, const Buffer& bytes) {
    pair.ask(make_frame({.command = command, .tid = kTid, .uid = kUid, .mid = 30}, words, bytes));
  };
  SECTION("deleted") {
    changes(0x06, Fields{}.u16(0).bytes, Fields{}.u8(4).text("*").u8(0).bytes);
    CHECK(half->waiting() == 1);
    changes(0x06, Fields{}.u16(0).bytes, Fields{}.u8(4).text("\\f").u8(0).bytes);
    CHECK(half->waiting() == 0);
  }
  SECTION("renamed, once the client was told") {
    constexpr auto kTold = static_cast<std::uint32_t>(Status::lost_writebehind_data);
    const Slice rename =
        make_frame({.command = 0x07, .tid = kTid, .uid = kUid, .mid = 31}, Fields{}.u16(0).bytes,
                   Fields{}.u8(4).text("f").u8(0).u8(4).text("g").u8(0).bytes);
    CHECK(status_of(pair.ask(rename)) == kTold);
    CHECK(half->waiting() == 1);
    CHECK(status_of(pair.ask(rename)) != kTold);
    CHECK(half->waiting() == 0);
  }
}

TEST_CASE("SMB1: what waited behind an open was sent before its error, which may not have been read") {
  constexpr auto kTold = static_cast<std::uint32_t>(Status::lost_writebehind_data);
  const auto lost = std::make_shared<LostWrites>(1), far = std::make_shared<LostWrites>();
  {
    Pair old(lost, 1, far), next(lost, 1, far);
    const std::uint16_t fid = fid_of(old.ask(create("F", 10, {.disposition = 5})));
    old.server_waits = true;
    REQUIRE(old.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 11)));
    next.server.files["F"] = next.server.files["G"] = "old";
    next.client_sends(create("F", 21));
    next.client_sends(create("G", 22));
    old.near.stream_ended(old.now, modules::Ending::reset);
    next.pass(std::chrono::milliseconds(50));
    next.run();
    REQUIRE(next.at_client.size() == 2);
    CHECK(status_of(*next.answer()) == kTold);
    next.near.lan_ended(next.now, modules::Ending::reset);
  }
  Pair pair(lost, 1, far);
  pair.server.files["F"] = "old";
  CHECK(status_of(pair.ask(create("F", 20))) == kTold);
  CHECK(status_of(pair.ask(create("F", 21))) == 0);
}

TEST_CASE("SMB1: what a client had sent before an error came to its host does not count as having read it") {
  constexpr auto kTold = static_cast<std::uint32_t>(Status::lost_writebehind_data);
  const auto lost = std::make_shared<LostWrites>(1);
  const LostWrites::File f{.ends = {.client = {std::byte{1}}}, .share = u"T", .path = u"F"};
  lost->add(f, {.cause = promises::Cause::server_gone});
  Pair pair(lost);
  pair.server.files["F"] = pair.server.files["G"] = "old";
  pair.client_acknowledges = false;
  CHECK(status_of(pair.ask(create("F", 20))) == kTold);
  CHECK(status_of(pair.ask(create("G", 21))) == 0);
  CHECK(lost->has_record(f));
  pair.client_acknowledges = true;
  pair.pass(std::chrono::milliseconds(1));
  CHECK(status_of(pair.ask(create("G", 22))) == 0);
  CHECK_FALSE(lost->has_record(f));
}

TEST_CASE("SMB1: a half gives up a connection for want of memory only when it owes its client nothing") {
  using Leave = Near::Leave;
  const auto lost = std::make_shared<LostWrites>(1);
  Pair pair(lost);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
  pair.server_waits = true;
  REQUIRE(pair.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 11)));
  CHECK(pair.near.gives_up() == Leave::later);
  CHECK_FALSE(pair.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 12)));
  if (GENERATE(false, true)) {
    pair.server_waits = false;
    pair.run();
    CHECK(pair.near.gives_up() == Leave::now);
  } else {
    pair.near.lan_opaque(pair.now);  // that is no time to wait for
    pair.pass(std::chrono::milliseconds(0));
    CHECK(pair.aborted);
    CHECK(lost->waiting() == 1);
  }
}

TEST_CASE("SMB1: a client that signs is reset when it goes on with a file that has lost writes, and not before") {
  const auto lost = std::make_shared<LostWrites>(1);
  Pair pair(lost);
  pair.server.files["F"] = pair.server.files["G"] = "old";
  lost->add({.ends = {.client = {std::byte{1}}}, .share = u"T", .path = u"F"}, {.cause = promises::Cause::server_gone});
  pair.near.cannot_open(smb::reasons::smb_signed);
  CHECK(pair.near.leave_alone() == smb::reasons::optimised);
  CHECK(pair.near.reason() == smb::reasons::smb_signed);
  CHECK(status_of(pair.ask(create("G", 20))) == 0);
  CHECK_FALSE(pair.aborted);
  pair.client_sends(create("F", 21));
  CHECK(pair.aborted);
  CHECK(lost->events().counters().reported[static_cast<std::size_t>(promises::Told::reset)] == 1);
}

TEST_CASE("SMB1: the files of a folder that another connection renames keep their records") {
  const auto lost = std::make_shared<LostWrites>(1), far = std::make_shared<LostWrites>();
  Pair old(lost, 1, far), next(lost, 1, far);
  const std::uint16_t fid = fid_of(old.ask(create("D\\F", 10, {.disposition = 5})));
  next.server.files["D"] = "";
  const auto rename = [&](std::uint16_t mid) {
    return make_frame({.command = 0x07, .tid = kTid, .uid = kUid, .mid = mid}, Fields{}.u16(0).bytes,
                      Fields{}.u8(4).text("D").u8(0).u8(4).text("Y").u8(0).bytes);
  };
  SECTION("nothing is promised meanwhile") {
    next.server_waits = true;
    next.client_sends(rename(31));
    CHECK_FALSE(old.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 11)));
  }
  SECTION("what is promised then has the new name") {
    REQUIRE(status_of(next.ask(rename(31))) == 0);
    old.ask(write(fid, 0, as_bytes(some_bytes(100)), 11));  // after this both halves have it marked
    old.server_waits = true;
    REQUIRE(old.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 12)));
    old.near.stream_ended(old.now, modules::Ending::reset);
    const auto records = lost->records();
    REQUIRE(records.size() == 1);
    CHECK(records.front().file.path == u"Y\\F");
  }
}

TEST_CASE("SMB1: nothing is promised while a rename is without an answer") {
  Pair pair;
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
  pair.server_waits = true;
  pair.client_sends(make_frame({.command = 0x07, .tid = kTid, .uid = kUid, .mid = 31}, Fields{}.u16(0).bytes,
                               Fields{}.u8(4).text("x").u8(0).u8(4).text("y").u8(0).bytes));
  CHECK_FALSE(pair.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 11)));
  pair.server_waits = false;
  pair.run();
  pair.at_client.clear();
  CHECK(pair.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 12)));
}

TEST_CASE(
    "SMB1: Linux gets no promises under an oplock that it did not ask for, unless the operator allows it") {
  Pair pair;
  Surroundings surroundings;
  surroundings.line_bytes_per_second = 1'000'000;
  surroundings.features.metadata_relaxed = true;
  const bool is_allowed = GENERATE(false, true), is_linux = GENERATE(false, true);
  surroundings.features.write_behind_cached = is_allowed;
  pair.near.on_surroundings(pair.now, surroundings);
  pair.far.on_surroundings(pair.now, surroundings);
  pair.ask(session_setup(9, is_linux ? "CIFS VFS Client for Linux" : "another"));
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
  const bool is_promised = is_allowed || !is_linux;
  CHECK(pair.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 11)).has_value() == is_promised);
  CHECK(pair.near.reason() == (is_promised ? smb::reasons::optimised : smb::reasons::smb_hides_errors));
}

TEST_CASE(
    "SMB1: a CLOSE of a file that was written waits for the server, unless a FLUSH was answered behind") {
  Pair pair;
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
  REQUIRE(pair.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 11)));
  pair.run();
  SECTION("not flushed") {}
  SECTION("written again behind the FLUSH") {
    pair.client_sends(flush(fid, 12));
    REQUIRE(pair.ask_here(write(fid, 100, as_bytes(some_bytes(100)), 13)));
    CHECK(status_of(pair.only_answer()) == 0);
  }
  SECTION("a WRITE that the server has not answered when it is asked to flush") {
    pair.client_sends(write(fid, 0, as_bytes(some_bytes(100)), 12, kWriteThrough));
    pair.client_sends(flush(fid, 13));
    pair.run();
    pair.at_client.clear();
  }
  pair.server.refused[kClose] = kStatusDiskFull;
  CHECK_FALSE(pair.ask_here(close(fid, 14)));
  CHECK(status_of(pair.only_answer()) == kStatusDiskFull);
  CHECK_FALSE(pair.aborted);
}

TEST_CASE("SMB1: WRITE_AND_CLOSE tells of a loss that was told before, once more") {
  constexpr auto kTold = static_cast<std::uint32_t>(Status::lost_writebehind_data);
  Pair pair;
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10, {.disposition = 5})));
  pair.server.failing_writes[0] = kStatusDiskFull;
  REQUIRE(pair.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 11)));
  CHECK(status_of(pair.ask(flush(fid, 12))) == kTold);
  CHECK(status_of(pair.ask(write_and_close(fid, 100, as_bytes(some_bytes(10)), 13))) == kTold);
  CHECK_FALSE(pair.aborted);
}

TEST_CASE("SMB1: what is done to a stream neither ends the record of its file nor tells of it") {
  constexpr auto kTold = static_cast<std::uint32_t>(Status::lost_writebehind_data);
  const auto lost = std::make_shared<LostWrites>(1), far = std::make_shared<LostWrites>();
  const auto& half = GENERATE(false, true) ? far : lost;
  Pair pair(lost, 1, far);
  pair.server.files["F"] = pair.server.files["F:S"] = pair.server.files["F::$DATA"] = "old";
  half->add({.ends = {.client = {std::byte{1}}}, .share = u"T", .path = u"F"}, {.cause = Cause::server_gone});
  CHECK(status_of(pair.ask(create("F:S", 10, {.disposition = 5}))) == 0);
  CHECK(status_of(pair.ask(create("F:S", 11))) == 0);
  const Slice deleting = pair.ask(create("F:S", 12, {.options = kOptionDeleteOnClose}));
  CHECK(status_of(pair.ask(close(fid_of(deleting), 13))) == 0);
  CHECK(half->waiting() == 1);
  CHECK(status_of(pair.ask(create("f::$Data", 14))) == kTold);
  CHECK(status_of(pair.ask(create("F", 15))) == 0);
}

TEST_CASE("SMB1: nothing is promised through a stream") {
  Pair pair;
  const std::string_view name = GENERATE("F:S", "F::$DATA");
  const std::uint16_t fid = fid_of(pair.ask(create(name, 10, {.flags = 0x06, .disposition = 5})));
  CHECK(pair.ask_here(write(fid, 0, as_bytes(some_bytes(100)), 11)).has_value() == (name == "F::$DATA"));
}

TEST_CASE("SMB1: the older requests are told of lost writes, too, and end or move records") {
  constexpr auto kTold = static_cast<std::uint32_t>(Status::lost_writebehind_data);
  const auto lost = std::make_shared<LostWrites>(1), far = std::make_shared<LostWrites>();
  const auto& half = GENERATE(false, true) ? far : lost;
  Pair pair(lost, 1, far);
  const LostWrites::File f{.ends = {.client = {std::byte{1}}}, .share = u"T", .path = u"F"};
  half->add(f, {.cause = Cause::server_gone});
  SECTION("OPEN") {
    const auto opens = [&](unsigned access, std::uint16_t mid) {
      return status_of(pair.ask(by_name(0x02, Fields{}.u16(access).u16(0).bytes, "\\f", mid)));
    };
    CHECK(opens(0x40, 20) == kTold);
    CHECK(opens(0x40, 21) == 0);
    CHECK(opens(0x42, 22) == kTold);
    CHECK(opens(0x42, 23) == 0);
    CHECK(half->waiting() == 0);
  }
  SECTION("CREATE") {
    CHECK(status_of(pair.ask(by_name(0x03, Fields{}.u16(0).u32(0).bytes, "f", 20))) == 0);
    CHECK(half->waiting() == 0);
  }
  SECTION("NT_RENAME") {
    const Slice rename = by_name(0xA5, Fields{}.u16(0).u16(0x104).u32(0).bytes, "f", 20, "g");
    const LostWrites::File below{.ends = f.ends, .share = u"T", .path = u"D\\H"};
    half->add(below, {.cause = Cause::server_gone});
    CHECK(status_of(pair.ask(by_name(0xA5, Fields{}.u16(0).u16(0x104).u32(0).bytes, "d", 19, "e"))) == 0);
    CHECK_FALSE(half->has_record(below));
    CHECK(half->waiting() == 2);
    CHECK(status_of(pair.ask(rename)) == kTold);
  }
}

TEST_CASE("SMB1: one file has one record, however its name is written") {
  constexpr auto kTold = static_cast<std::uint32_t>(Status::lost_writebehind_data);
  const auto lost = std::make_shared<LostWrites>(1);
  lost->add({.ends = {.client = {std::byte{1}}}, .share = u"T", .path = u"D\\F"},
            {.cause = Cause::server_gone});
  Pair pair(lost);
  Slice request = create(GENERATE("\\d\\f", "d\\\\f", "d\\.\\f", "d/f"), 20);
  SECTION("relative to the share") {}
  SECTION("in DFS, with server and share") {
    Buffer dfs;
    append(dfs, create("\\s\\t\\d\\f", 20).bytes());
    dfs[kFrameHeadBytes + 11] |= std::byte{0x10};
    request = Slice::copy_of(dfs);
  }
  CHECK(status_of(pair.ask(request)) == kTold);
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
