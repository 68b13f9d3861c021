// SPDX-License-Identifier: Apache-2.0
// The oplocks that we hold for clients while the halves are out of contact.
#include "tests/proxy/modules/smb/smb2/model.h"

namespace longhaul::smb::smb2::model {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kReads = access::read_data | access::read_attributes;

// A file that is open and has been read, under an oplock that the client knows nothing of.
struct Reading {
  explicit Reading(std::uint32_t seed, std::uint32_t access = kReads) : world(seed) {
    world.server.files["a"] = "12345";
    REQUIRE(world.connect());
    world.tell({.since = world.now, .confirmed = world.now, .heard = world.now});
    file = *world.create("a", Disposition::open, kNone, 0, access);
    CHECK(read() == "12345");
    world.settle();
    const int asked = world.server.done[Command::read];
    CHECK(read() == "12345");
    CHECK(world.server.done[Command::read] == asked);  // from what is here
  }
  std::string read() {
    const auto answer = world.wait(world.send_read(file, 0, 5));
    REQUIRE(answer);
    return std::string(as_text(parse_read_response(answer->first().bytes)->data));
  }
  World world;
  FileId file;
};

}  // namespace

TEST_CASE("after a long silence a half answers nothing by an oplock that may have been returned") {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    Reading reading(seed);
    World& world = reading.world;
    const auto began = world.now;
    world.pass(9s);
    const int asked = world.server.done[Command::read];
    CHECK(reading.read() == "12345");
    CHECK(world.server.done[Command::read] == asked);
    world.pass(2s);
    world.server.files["a"] = "67890";
    CHECK(reading.read() == "67890");
    world.settle();
    // In touch again, and it goes on as before.
    world.tell({.since = world.now, .confirmed = world.now, .heard = world.now});
    CHECK(reading.read() == "67890");
    world.settle();
    CHECK(reading.read() == "67890");
    // And apart once more.
    world.pass(15s);
    world.server.files["a"] = "abcde";
    CHECK(reading.read() == "abcde");
    CHECK(world.now > began);
    CHECK_FALSE(world.aborted);
  }
}

TEST_CASE("after a long silence a writer's file is read from the server, too") {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    Reading reading(seed, 0x1F01FF);
    reading.world.pass(11s);
    reading.world.server.files["a"] = "67890";
    CHECK(reading.read() == "67890");
  }
}

TEST_CASE("an oplock that is granted during the silence is not used for answers") {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    world.server.files["a"] = "12345";
    REQUIRE(world.connect());
    world.tell({.since = world.now, .confirmed = world.now, .heard = world.now});
    world.pass(11s);
    const auto file = world.create("a", Disposition::open, kNone, 0, kReads);
    REQUIRE(file);
    world.settle();
    const auto read = [&] {
      const auto answer = world.wait(world.send_read(*file, 0, 5));
      REQUIRE(answer);
      return std::string(as_text(parse_read_response(answer->first().bytes)->data));
    };
    CHECK(read() == "12345");
    world.link_cut = true;
    world.settle();
    world.link_cut = false;
    const int asked = world.server.done[Command::query_info];
    REQUIRE(world.wait(world.send_query_info(*file, file_info::standard)));
    CHECK(world.server.done[Command::query_info] == asked + 1);
  }
}

TEST_CASE("data read before a silence is void after it, even if nothing was read meanwhile") {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    Reading reading(seed);
    World& world = reading.world;
    world.pass(15s);
    world.server.files["a"] = "67890";
    world.tell({.since = world.now, .confirmed = world.now, .heard = world.now});
    CHECK(reading.read() == "67890");
  }
}

TEST_CASE(
    "other clients wait for a reader's oplock only as long as the silence must last, for a writer's until it "
    "ends") {
  for (const bool writes : {false, true}) {
    for (std::uint32_t seed = 1; seed <= 30; ++seed) {
      INFO("seed " << seed << (writes ? ", may write" : ""));
      Reading reading(seed, writes ? 0x1F01FF : kReads);
      World& world = reading.world;
      world.link_cut = true;
      const auto heard = world.now;
      world.tell({.since = world.now - 1h, .confirmed = world.now, .heard = heard});
      REQUIRE(world.server.take_oplock(kNone));
      world.settle();
      CHECK(world.server.breaking());
      world.pass(heard + 11s - world.now);
      world.settle();
      CHECK(world.server.breaking());
      world.pass(1s + 1ms);
      world.settle();
      CHECK(world.server.breaking() == writes);
      world.server.files["a"] = "67890";
      world.link_cut = false;
      world.tell({.since = world.now, .confirmed = world.now, .heard = world.now});
      world.settle();
      CHECK_FALSE(world.server.breaking());
      CHECK(reading.read() == "67890");
      CHECK_FALSE(world.aborted);
    }
  }
}

TEST_CASE("a client that reopens its file waits for no round trip before our oplock is returned") {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    Reading reading(seed);
    World& world = reading.world;
    world.server_idle = true;
    const MessageId again = world.send_create("a", Disposition::open, kNone, 0, kReads);
    world.settle();  // it is at the server, which breaks the oplock for it
    world.link_cut = true;
    REQUIRE(world.server.take_oplock(kNone));
    world.server_idle = false;
    world.settle();
    CHECK_FALSE(world.server.breaking());
    world.link_cut = false;
    CHECK(world.opened(again));
    world.server.files["a"] = "67890";
    CHECK(reading.read() == "67890");
    CHECK_FALSE(world.aborted);
  }
}

}  // namespace longhaul::smb::smb2::model
