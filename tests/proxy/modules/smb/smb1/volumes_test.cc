// SPDX-License-Identifier: Apache-2.0
// The free space of a share, which the far half looks at while the near half repeats it.
#include "proxy/modules/smb/smb1/pair.h"

namespace longhaul::smb::smb1::testing {
namespace {

using namespace std::chrono_literals;

// A client that has asked for the free space: 1,000 units.
struct Asker {
  Pair pair;
  Surroundings surroundings;
  std::uint16_t fid = 0, mid = 10;

  Asker() {
    surroundings.line_bytes_per_second = 1'000'000;
    surroundings.round_trip = 100ms;
    surroundings.features.write_behind_cached = true;
    pair.near.on_surroundings(pair.now, surroundings);
    pair.far.on_surroundings(pair.now, surroundings);
    pair.server.files["F"] = "12345";
    fid = fid_of(pair.ask(unicode(create(std::string_view("\0F\0", 3), ++mid))));
    set(1000);
    CHECK(units_in(pair.ask(question())) == 1000);
  }
  Slice question() { return trans2(3, Fields{}.u16(0x103).bytes, ++mid); }
  static std::uint64_t units_in(const Slice& frame) {
    const Message message = parsed(frame);
    REQUIRE(message.header.status == 0);
    return load_le<std::uint64_t>(parse_transaction(message, message.first())->data, 8);
  }
  void set(std::uint64_t units) { pair.server.free_bytes = units * 4096; }
  void look() {
    pair.pass(110ms);
    pair.run();
  }
  std::optional<std::uint64_t> units_here() {
    const auto answer = pair.ask_here(question());
    return answer ? std::optional(units_in(*answer)) : std::nullopt;
  }
};

TEST_CASE("SMB1: the free space is repeated while the far half looks at it, and is never older than a look") {
  Asker asker;
  for (std::uint64_t units = 999; units > 990; --units) {
    asker.look();
    CHECK(asker.units_here() == units + 1);
    asker.set(units);
  }
}

TEST_CASE("SMB1: the free space is asked at the server when the looks end, or their answers do not come") {
  Asker asker;
  SECTION("the client asks again after a while") {
    for (int turn = 0; turn < 60; ++turn) asker.look();
    const int asked = asker.pair.server.seen[0x32];
    for (int turn = 0; turn < 10; ++turn) asker.look();
    CHECK(asker.pair.server.seen[0x32] == asked);  // nobody looks any more
  }
  SECTION("the server does not answer a look") {
    asker.pair.server_waits = true;
    asker.look();
    asker.look();
    asker.pair.server_waits = false;
  }
  SECTION("the server refuses a look") {
    asker.pair.server.refused[0x32] = 0xC0000022;
    asker.look();
    asker.pair.server.refused.clear();
  }
  SECTION("the halves hear nothing from each other") {
    asker.pair.now += 60s;
    asker.surroundings.contact.since = asker.surroundings.contact.confirmed = asker.pair.now - 50s;
    asker.pair.near.on_surroundings(asker.pair.now, asker.surroundings);
  }
  asker.set(500);
  CHECK_FALSE(asker.units_here());
  CHECK(Asker::units_in(asker.pair.only_answer()) == 500);
  CHECK(asker.units_here() == 500);
}

TEST_CASE("SMB1: what the client itself may change of the free space shows at once") {
  Asker asker;
  Pair& pair = asker.pair;
  SECTION("a write") {
    pair.ask(write(asker.fid, 0, as_bytes(std::string_view("hello")), ++asker.mid));
    pair.run();
  }
  SECTION("a close of a file that was open for writing") {
    pair.ask(close(asker.fid, ++asker.mid));
    pair.run();
  }
  SECTION("a file is deleted by name") {
    pair.ask(make_frame({.command = 0x06, .tid = kTid, .uid = kUid, .mid = ++asker.mid},
                        Fields{}.u16(0).bytes, Fields{}.u8(4).text("G").u8(0).bytes));
  }
  asker.set(900);
  CHECK_FALSE(asker.units_here());
  CHECK(Asker::units_in(pair.only_answer()) == 900);
  CHECK(asker.units_here() == 900);
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
