// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/pair.h"

namespace longhaul::smb::smb1::testing {
namespace {

TEST_CASE("SMB1: a directory is listed completely in one round trip") {
  Pair pair;
  for (int i = 0; i < 95; ++i) pair.server.files["FILE" + std::to_string(1000 + i)] = "x";
  const bool by_name = GENERATE(false, true);
  std::vector<std::string> names;
  const auto take = [&](const Slice& frame, bool first) {
    const Message message = parsed(frame);
    REQUIRE(message.header.status == 0);
    const auto part = parse_transaction(message, message.first());
    const auto reply =
        first ? parse_find_first_reply(part->parameters) : parse_find_next_reply(part->parameters);
    for (Bytes at = part->data;;) {
      names.emplace_back(as_text(at.subspan(94, load_le<std::uint32_t>(at, 60))));
      const auto next = load_le<std::uint32_t>(at, 0);
      if (next == 0) break;
      at = at.subspan(next);
    }
    return reply->end_of_search;
  };
  Fields first;
  first.u16(0x16).u16(10).u16(6).u16(0x104).u32(0).text("*").u8(0);
  bool end = take(pair.ask(trans2(1, first.bytes, 10)), true);
  int round_trips = 0;
  for (std::uint16_t mid = 11; !end; ++mid) {
    Fields next;
    next.u16(0x55).u16(10).u16(0x104).u32(0).u16(by_name ? 6 : 14).text(by_name ? names.back() : "").u8(0);
    auto answer = pair.ask_here(trans2(2, next.bytes, mid));
    if (!answer) {
      ++round_trips;
      answer = pair.only_answer();
    }
    CHECK(mid_of(*answer) == mid);
    end = take(*answer, false);
    pair.run();
  }
  CHECK(names.size() == 95);
  CHECK(std::is_sorted(names.begin(), names.end()));
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  CHECK(round_trips == 0);
  CHECK(pair.server.seen[0x34] == 1);  // the search asked to be closed at its end
}

TEST_CASE("SMB1: a client that changes its search parameters loses nothing") {
  Pair pair;
  for (int i = 0; i < 60; ++i) pair.server.files["FILE" + std::to_string(1000 + i)] = "x";
  Fields first;
  first.u16(0x16).u16(10).u16(0).u16(0x104).u32(0).text("*").u8(0);
  pair.ask(trans2(1, first.bytes, 10));
  Fields next;  // fewer at once than were fetched
  next.u16(0x55).u16(5).u16(0x104).u32(0).u16(8).u8(0);
  const Slice answer = pair.ask(trans2(2, next.bytes, 11));
  const Message message = parsed(answer);
  const auto part = parse_transaction(message, message.first());
  CHECK(as_text(part->data.subspan(94, 8)) == "FILE1010");
}

TEST_CASE("SMB1: repeated queries of an open file are answered locally until it is written") {
  Pair pair;
  pair.server.files["F"] = some_bytes(100);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  const Buffer question = Fields{}.u16(fid).u16(0x102).bytes;
  pair.ask(trans2(7, question, 11));
  const auto again = pair.ask_here(trans2(7, question, 12));
  REQUIRE(again);
  CHECK(mid_of(*again) == 12);
  pair.ask(write(fid, 0, as_bytes(some_bytes(200)), 13));
  const Slice changed = pair.ask(trans2(7, question, 14));
  const Message message = parsed(changed);
  CHECK(load_le<std::uint64_t>(parse_transaction(message, message.first())->data, 0) == 200);
}

TEST_CASE("SMB1: queries that a client sends for every file are sent along with the open") {
  Pair pair;
  for (const char* name : {"A", "B", "C"}) pair.server.files[name] = some_bytes(100);
  const std::uint16_t first = fid_of(pair.ask(create("A", 10)));
  pair.ask(trans2(7, Fields{}.u16(first).u16(0x102).bytes, 11));
  pair.ask(read(first, 0, 1000, 11));
  const std::uint16_t second = fid_of(pair.ask(create("B", 12)));
  REQUIRE(pair.ask_here(trans2(7, Fields{}.u16(second).u16(0x102).bytes, 13)));
  CHECK(data_of(*pair.ask_here(read(second, 0, 1000, 14))).size() == 100);
  // Asked before the answer is here: it waits for that, and nothing goes to the server.
  pair.client_sends(create("C", 15));
  while (pair.move_up() || pair.server_answers()) {
  }
  while (pair.at_client.empty()) pair.move_down();
  const std::uint16_t third = fid_of(*pair.answer());
  const int before = pair.server.seen[0x32];
  pair.client_sends(trans2(7, Fields{}.u16(third).u16(0x102).bytes, 16));
  CHECK(pair.up.empty());
  CHECK(mid_of(pair.only_answer()) == 16);
  CHECK(pair.server.seen[0x32] == before);
}

std::uint64_t size_in(const Slice& frame) {
  const Message message = parsed(frame);
  return load_le<std::uint64_t>(parse_transaction(message, message.first())->data, 0);
}

TEST_CASE("SMB1: an open for attributes keeps the oplock, and is closed locally") {
  Pair pair;
  pair.server.files["F"] = some_bytes(300'000);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  pair.ask(read(fid, 0, 60'000, 11));
  const std::uint16_t look = fid_of(pair.ask(create("f", 12, {.access = 0x100080})));
  CHECK(pair.server.handles.at(fid).oplock == 2);
  REQUIRE(pair.ask_here(close(look, 13)));
  pair.run();
  CHECK_FALSE(pair.server.handles.contains(look));
  CHECK(pair.ask_here(read(fid, 60'000, 60'000, 14)));
  SECTION("its changes void earlier answers") {
    const Buffer question = Fields{}.u16(fid).u16(0x102).bytes;
    pair.ask(trans2(7, question, 15));
    REQUIRE(pair.ask_here(trans2(7, question, 16)));
    const std::uint16_t other = fid_of(pair.ask(create("F", 17, {.access = 0x100180})));
    pair.ask(trans2(8, Fields{}.u16(other).u16(0x101).u16(0).bytes, 18));
    CHECK_FALSE(pair.ask_here(trans2(7, question, 19)));
    pair.only_answer();
  }
  SECTION("without a batch oplock the server closes it") {
    pair.server.break_oplock("F");
    pair.run();
    const std::uint16_t other = fid_of(pair.ask(create("F", 17, {.access = 0x100080})));
    CHECK_FALSE(pair.ask_here(close(other, 18)));
    pair.only_answer();
  }
}

TEST_CASE("SMB1: a client that repeatedly looks at an open file gets handles that were opened ahead") {
  Pair pair;
  pair.server.files["F"] = some_bytes(300'000);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  const auto look = [&](std::uint16_t mid) { return create("F", mid, {.access = 0x100080}); };
  std::uint16_t handle = fid_of(pair.ask(look(11)));
  REQUIRE(pair.ask_here(close(handle, 12)));
  pair.run();
  for (int i = 0; i < 10; ++i) {
    const auto answer = pair.ask_here(look(13));
    REQUIRE(answer);
    CHECK(mid_of(*answer) == 13);
    handle = fid_of(*answer);
    CHECK(handle != fid);
    CHECK(pair.server.handles.at(handle).looks);
    REQUIRE(pair.ask_here(close(handle, 14)));
    pair.run();
  }
  CHECK(pair.server.handles.size() > 1);
  SECTION("they are closed with the file") {
    REQUIRE(pair.ask_here(close(fid, 15)));
    pair.run();
    CHECK(pair.server.handles.empty());
  }
  SECTION("and when another client opens it") {
    pair.server.break_oplock("F");
    pair.run();
    CHECK(pair.server.is_broken("F"));
    CHECK(pair.server.handles.size() == 1);
    CHECK_FALSE(pair.ask_here(look(15)));
    pair.only_answer();
  }
  SECTION("and when it is written, because they contain its size") {
    REQUIRE(pair.ask_here(write(fid, 0, as_bytes(some_bytes(400'000)), 15)));
    CHECK_FALSE(pair.ask_here(look(16)));
    const Slice answer = pair.only_answer();
    const Message message = parsed(answer);
    CHECK(parse_nt_create_reply(message.first())->end_of_file == 400'000);
  }
  SECTION("and another kind of look passes") {
    CHECK_FALSE(pair.ask_here(create("F", 15, {.access = 0x80})));
    CHECK(status_of(pair.only_answer()) == 0);
  }
  SECTION("a used one stays when the others are closed") {
    handle = fid_of(*pair.ask_here(look(15)));
    pair.ask(write(fid, 0, as_bytes(some_bytes(10)), 16));
    CHECK(pair.server.handles.size() == 2);
    CHECK(status_of(pair.ask(trans2(7, Fields{}.u16(handle).u16(0x102).bytes, 17))) == 0);
    CHECK(status_of(*pair.ask_here(close(handle, 18))) == 0);
  }
  CHECK_FALSE(pair.aborted);
}

// It has opened a handle ahead.
TEST_CASE("SMB1: queries and looks are answered when only the far half has as many opens as it tracks") {
  Pair pair;
  std::uint16_t mid = 10;
  const auto look = [&] { return create("F", ++mid, {.access = 0x100080}); };
  const auto query = [&](std::uint16_t fid) { return trans2(7, Fields{}.u16(fid).u16(0x102).bytes, ++mid); };
  pair.server.files["F"] = some_bytes(1000);
  const std::uint16_t fid = fid_of(pair.ask(create("F", mid)));
  // The next opens are sent with this query, and the next look has its handle.
  pair.ask(query(fid));
  pair.ask(read(fid, 0, 1000, ++mid));
  const std::uint16_t looked = fid_of(pair.ask(look()));
  REQUIRE(pair.ask_here(close(looked, ++mid)));
  pair.run();
  REQUIRE(pair.server.handles.size() == 2);
  for (std::size_t n = pair.server.handles.size(); n < OpenTable::kMostOpens; ++n) {
    const std::string name = "N" + std::to_string(n);
    pair.server.files[name];
    REQUIRE(status_of(pair.ask(create(name, ++mid))) == 0);
  }
  REQUIRE(pair.server.handles.size() == OpenTable::kMostOpens);
  SECTION("a query about the file is answered") {
    pair.server.files["LAST"] = "12345";
    const std::uint16_t last = fid_of(pair.ask(create("LAST", ++mid)));
    CHECK(size_in(pair.ask(query(last))) == 5);
  }
  SECTION("another handle for a look is closed again") {
    REQUIRE(pair.ask_here(look()));
    pair.run();
    CHECK(pair.server.handles.size() == OpenTable::kMostOpens);
  }
  CHECK_FALSE(pair.aborted);
}

TEST_CASE("SMB1: a path query for a file under an exclusive oplock is answered locally for a while") {
  Pair pair;
  pair.server.files["F"] = some_bytes(100);
  pair.server.files["G"] = some_bytes(200);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  CHECK(size_in(pair.ask(query_path("\\F", 0x102, 11))) == 100);
  const auto again = pair.ask_here(query_path("\\F", 0x102, 12));
  REQUIRE(again);
  CHECK(size_in(*again) == 100);
  CHECK(mid_of(*again) == 12);
  CHECK_FALSE(pair.ask_here(query_path("\\G", 0x102, 13)));
  CHECK(size_in(pair.only_answer()) == 200);
  SECTION("until it is written") {
    pair.ask(write(fid, 0, as_bytes(some_bytes(150)), 14));
    CHECK(size_in(pair.ask(query_path("\\F", 0x102, 15))) == 150);
  }
  SECTION("until the oplock is broken") {
    pair.server.break_oplock("F");
    pair.run();
    CHECK_FALSE(pair.ask_here(query_path("\\F", 0x102, 15)));
    pair.only_answer();
  }
  SECTION("until a folder above may have another name") {
    pair.now += std::chrono::seconds(3);
    CHECK_FALSE(pair.ask_here(query_path("\\F", 0x102, 15)));
    pair.only_answer();
  }
}

TEST_CASE("SMB1: recent free space is repeated, and queried with the next open") {
  Pair pair;
  pair.server.files["F"] = pair.server.files["G"] = some_bytes(100);
  const std::uint16_t fid = fid_of(pair.ask(create("F", 10)));
  const Buffer question = Fields{}.u16(0x103).bytes;
  pair.ask(trans2(3, question, 11));
  REQUIRE(pair.ask_here(trans2(3, question, 12)));
  SECTION("no longer than two round trips") {
    pair.now += std::chrono::milliseconds(201);
    CHECK_FALSE(pair.ask_here(trans2(3, question, 13)));
    pair.only_answer();
  }
  SECTION("not when something was written") {
    REQUIRE(pair.ask_here(write(fid, 0, as_bytes(some_bytes(150)), 13)));
    CHECK_FALSE(pair.ask_here(trans2(3, question, 14)));
    pair.only_answer();
  }
  SECTION("with the next open") {
    pair.now += std::chrono::seconds(1);
    pair.ask(create("G", 13));
    CHECK(pair.ask_here(trans2(3, question, 14)));
  }
}

TEST_CASE("SMB1: without an oplock an answer fetched with the open is used once") {
  Pair pair;
  pair.server.refuses_oplocks = true;
  pair.server.files["F"] = pair.server.files["G"] = some_bytes(100);
  const std::uint16_t first = fid_of(pair.ask(create("F", 10)));
  pair.ask(trans2(7, Fields{}.u16(first).u16(0x102).bytes, 11));
  const std::uint16_t second = fid_of(pair.ask(create("G", 12)));
  REQUIRE(pair.ask_here(trans2(7, Fields{}.u16(second).u16(0x102).bytes, 13)));
  CHECK_FALSE(pair.ask_here(trans2(7, Fields{}.u16(second).u16(0x102).bytes, 14)));
  pair.only_answer();
}

TEST_CASE(
    "SMB1: without an oplock an answer fetched with the open is not used after a READ, which may be newer") {
  Pair pair;
  pair.server.refuses_oplocks = true;
  pair.server.files["F"] = pair.server.files["G"] = some_bytes(100);
  const std::uint16_t first = fid_of(pair.ask(create("F", 10)));
  pair.ask(trans2(7, Fields{}.u16(first).u16(0x102).bytes, 11));
  const std::uint16_t second = fid_of(pair.ask(create("G", 12)));
  pair.server.files["G"] = some_bytes(10);
  CHECK(data_of(pair.ask(read(second, 0, 1000, 13))).size() == 10);
  CHECK_FALSE(pair.ask_here(trans2(7, Fields{}.u16(second).u16(0x102).bytes, 14)));
  CHECK(size_in(pair.only_answer()) == 10);
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
