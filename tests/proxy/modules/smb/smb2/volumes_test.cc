// SPDX-License-Identifier: Apache-2.0
#include "tests/proxy/modules/smb/smb2/model.h"

namespace longhaul::smb::smb2::model {
namespace {

std::uint64_t room(World& world, const FileId& file) {
  const auto answer =
      world.wait(world.send({.credit_charge = 1, .command = Command::query_info}, [&](LittleEndianWriter& w) {
        w.u16(41), w.u8(2), w.u8(fs_info::full_size), w.u32(4096), w.zeros(16);
        put(w, file);
        w.u8(0);
      }));
  REQUIRE(answer);
  REQUIRE(answer->header().status == Status::success);
  return load_le<std::uint64_t>(parse_buffer_response(answer->first().bytes)->buffer, 0);
}

// A share with the file "a" open, strict, whose size the client has asked.
FileId begin_strict(World& world) {
  world.server.files["a"] = "12345";
  world.switch_relaxed(false);
  REQUIRE(world.connect());
  const auto file = world.create("a", Disposition::open, kNone, 0, access::read_data);
  REQUIRE(file);
  world.settle();
  world.server.available_bytes = 1000;
  CHECK(room(world, *file) == 1000);
  world.settle();
  return *file;
}

// The far half looks as often as it does by itself.
void look(World& world) {
  world.pass(std::chrono::milliseconds(110));
  world.settle();
}

}  // namespace

TEST_CASE(
    "strict: a volume's size is repeated while the far half looks at it, and is never older than a look") {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    const FileId file = begin_strict(world);
    for (std::uint64_t bytes = 999; bytes > 990; --bytes) {
      look(world);
      world.server_idle = true;
      CHECK(room(world, file) == bytes + 1);
      world.server_idle = false;
      world.server.available_bytes = bytes;
    }
    CHECK_FALSE(world.aborted);
  }
}

TEST_CASE(
    "strict: a volume's size is repeated through any open file, but not beyond the one that is asked "
    "through") {
  World world(1);
  const FileId file = begin_strict(world);
  const auto other = world.create("a", Disposition::open, kNone, 0, access::read_attributes);
  REQUIRE(other);
  world.settle();
  world.server_idle = true;
  CHECK(room(world, *other) == 1000);
  const MessageId close = world.send_close(file);
  world.server_idle = false;
  world.server.available_bytes = 500;
  CHECK(room(world, *other) == 500);
  CHECK(world.status(close) == Status::success);
}

TEST_CASE("strict: a volume's size is asked at the server when the looks end, or their answers do not come") {
  SECTION("the client asks again after a while") {
    World world(1);
    const FileId file = begin_strict(world);
    for (int turn = 0; turn < 60; ++turn) look(world);
    world.server.available_bytes = 500;
    CHECK(room(world, file) == 500);
    for (int turn = 0; turn < 60; ++turn) look(world);
    const std::uint64_t ahead = world.far_counters().ahead_bytes;
    world.server.available_bytes = 400;
    look(world);
    CHECK(world.far_counters().ahead_bytes == ahead);  // it does not look any more
    CHECK(room(world, file) == 400);
  }
  SECTION("the server does not answer a look") {
    World world(1);
    const FileId file = begin_strict(world);
    world.server_idle = true;
    look(world);
    look(world);
    world.server.available_bytes = 500;
    world.server_idle = false;
    CHECK(room(world, file) == 500);
  }
  SECTION("the halves hear nothing from each other") {
    World world(1);
    const FileId file = begin_strict(world);
    world.tell({.since = world.now - std::chrono::seconds(60), .confirmed = world.now, .heard = world.now});
    world.link_cut = true;
    world.server.available_bytes = 500;
    world.now += std::chrono::milliseconds(1500);
    const MessageId asked =
        world.send({.credit_charge = 1, .command = Command::query_info}, [&](LittleEndianWriter& w) {
          w.u16(41), w.u8(2), w.u8(fs_info::full_size), w.u32(4096), w.zeros(16);
          put(w, file);
          w.u8(0);
        });
    CHECK_FALSE(world.answers.contains(asked));
  }
}

TEST_CASE("strict: what this client writes shows in the volume's size at once") {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    const FileId file = begin_strict(world);
    const auto written =
        world.create("a", Disposition::open, seed % 2 ? OplockLevel::batch : kNone, 0, 0x1F01FF);
    REQUIRE(written);
    CHECK(room(world, file) == 1000);
    if (seed % 3 == 0) look(world);
    REQUIRE(world.status(world.send_write(*written, 0, "hello")) == Status::success);
    world.server.available_bytes = 900;
    CHECK(room(world, file) == 900);
    CHECK(room(world, file) == 900);
    CHECK_FALSE(world.aborted);
  }
}

TEST_CASE("a volume's size is repeated for two seconds, through any file of the share") {
  World world(1);
  world.server.files["a"] = world.server.files["b"] = "12345";
  world.server.oplocks = false;
  REQUIRE(world.connect());
  const auto a = world.create("a", Disposition::open, kNone, 0, access::read_data);
  const auto b = world.create("b", Disposition::open, kNone, 0, access::read_data);
  REQUIRE((a && b));
  world.settle();
  world.server.available_bytes = 1000;
  world.now += std::chrono::seconds(3);
  CHECK(room(world, *a) == 1000);
  world.server_idle = true;
  CHECK(room(world, *b) == 1000);
  CHECK(room(world, *a) == 1000);
  world.server_idle = false;
  world.server.available_bytes = 500;
  world.now += std::chrono::seconds(3);
  CHECK(room(world, *a) == 500);
}

TEST_CASE("a volume's size is not requested ahead of promised writes") {
  World world(1);
  world.server.files["a"] = world.server.files["b"] = "12345";
  REQUIRE(world.connect());
  const auto file = world.create("a", Disposition::open, OplockLevel::batch, 0, 0x1F01FF);
  REQUIRE(file);
  world.settle();
  const std::uint64_t before = room(world, *file);
  world.server.puts_off = Command::write;  // until later
  REQUIRE(world.status(world.send_write(*file, 0, "hello")) == Status::success);
  const auto other = world.create("b", Disposition::open, kNone, 0, access::read_data);
  REQUIRE(other);
  world.settle();  // all that was asked with the open has come
  world.server.puts_off.reset();
  world.server.available_bytes -= 4096;
  CHECK(room(world, *other) == before - 4096);
}

TEST_CASE("a volume's size is requested again after this client has written") {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    world.server.files["a"] = "12345";
    REQUIRE(world.connect());
    const auto file =
        world.create("a", Disposition::open, seed % 2 ? OplockLevel::batch : kNone, 0, 0x1F01FF);
    REQUIRE(file);
    const std::uint64_t before = room(world, *file);
    CHECK(room(world, *file) == before);
    const auto write = world.send_write(*file, 0, "hello");
    REQUIRE(world.status(write) == Status::success);
    world.server.available_bytes -= 4096;
    CHECK(room(world, *file) == before - 4096);
    CHECK_FALSE(world.aborted);
  }
}

}  // namespace longhaul::smb::smb2::model
