// SPDX-License-Identifier: Apache-2.0
#include "tests/proxy/modules/smb/smb2/model.h"

namespace longhaul::smb::smb2::model {
namespace {

// Two connections of one client; the second is up to binding.
struct Two {
  explicit Two(std::uint32_t seed) : first(seed, lost, channels), second(seed + 1, lost, channels) {
    REQUIRE(first.connect());
    const auto negotiate =
        second.send({.credit_charge = 1, .command = Command::negotiate}, [&](LittleEndianWriter& w) {
          w.u16(36), w.u16(1), w.u16(1), w.u16(0), w.u32(4), w.u64(1), w.u64(second.client), w.u64(0),
              w.u16(0x0210);
        });
    REQUIRE(second.wait(negotiate));
  }
  std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>();
  std::shared_ptr<Channels> channels = std::make_shared<Channels>();
  World first, second;
};

}  // namespace

TEST_CASE("a query for the server's interfaces is answered by the server") {
  World world(1);
  REQUIRE(world.connect());
  world.settle();
  CHECK(world.status(world.send_query_interfaces()) == Status::success);
  CHECK(world.server.done[Command::ioctl] == 1);
}

TEST_CASE("after another connection binds to its session, a connection answers nothing locally") {
  Two two(1);
  two.first.server.files["a"] = "12345";
  const auto file = two.first.create("a", Disposition::open, kBatch);
  REQUIRE(two.first.status(two.first.send_read(*file, 0, 5)) == Status::success);
  two.first.settle();
  const auto read = [&] {
    const auto answer = two.first.wait(two.first.send_read(*file, 0, 5));
    REQUIRE(answer);
    return std::string(as_text(parse_read_response(answer->first().bytes)->data));
  };
  const int reads = two.first.server.done[Command::read];
  CHECK(read() == "12345");
  CHECK(two.first.server.done[Command::read] == reads);  // from what is here

  REQUIRE(two.second.wait(two.second.send_session_setup(true)));
  CHECK_FALSE(two.second.aborted);
  two.first.server.files["a"] = "67890";  // over the second, by which no oplock is broken
  CHECK(read() == "67890");
  const auto promised = two.first.near_counters().promises_made;
  CHECK(two.first.status(two.first.send_write(*file, 0, "1")) == Status::success);
  CHECK(two.first.near_counters().promises_made == promised);
}

TEST_CASE("a connection that could overtake another one's promises is not allowed into the session") {
  Two two(2);
  two.first.server.files["a"] = "";
  const auto file = two.first.create("a", Disposition::open, kBatch);
  two.first.settle();
  two.first.server_idle = true;
  REQUIRE(two.first.status(two.first.send_write(*file, 0, "12345")) == Status::success);
  two.second.send_session_setup(true);
  CHECK(two.second.aborted);
  two.first.server_idle = false;
  two.first.settle();
  CHECK(two.first.status(two.first.send_flush(*file)) == Status::success);
  CHECK(two.first.server.files["a"] == "12345");
}

TEST_CASE("connections of other clients, and ended ones, do not count as channels") {
  auto channels = std::make_shared<Channels>();
  auto lost = std::make_shared<LostWrites>();
  World other(3, lost, channels);
  other.client = 2;
  REQUIRE(other.connect());
  other.server.files["a"] = "12345";
  const auto file = other.create("a", Disposition::open, kBatch);
  REQUIRE(other.status(other.send_read(*file, 0, 5)) == Status::success);
  other.settle();
  {
    World gone(4, lost, channels);
    REQUIRE(gone.connect());
  }
  World binding(5, lost, channels);
  REQUIRE(binding.connect());
  REQUIRE(binding.wait(binding.send_session_setup(true)));
  CHECK_FALSE(binding.aborted);
  const int reads = other.server.done[Command::read];
  REQUIRE(other.status(other.send_read(*file, 0, 5)) == Status::success);
  CHECK(other.server.done[Command::read] == reads);
}

}  // namespace longhaul::smb::smb2::model
