// SPDX-License-Identifier: Apache-2.0
#include "tests/proxy/modules/smb/smb2/model.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using model::kNone;
using model::World;

namespace {

std::uint64_t room(World& world, const FileId& file) {
  const auto answer =
      world.wait(world.send({.credit_charge = 1, .command = Command::query_info}, [&](LittleEndianWriter& w) {
        w.u16(41), w.u8(2), w.u8(fs_info::full_size), w.u32(4096), w.zeros(16);
        model::put(w, file);
        w.u8(0);
      }));
  REQUIRE(answer);
  REQUIRE(answer->header().status == Status::success);
  return load_le<std::uint64_t>(parse_buffer_response(answer->first().bytes)->buffer, 0);
}

}  // namespace

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
