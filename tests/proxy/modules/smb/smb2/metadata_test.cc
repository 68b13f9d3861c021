// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/model.h"

namespace longhaul::smb::smb2::model {

TEST_CASE("queries made for earlier files are sent with the next open, and answered locally") {
  World world(4);
  for (int i = 0; i < 3; ++i)
    world.server.files["f" + std::to_string(i)] = std::string(100 + static_cast<std::size_t>(i), 'x');
  REQUIRE(world.connect());
  for (int i = 0; i < 3; ++i) {
    const auto file = world.create("f" + std::to_string(i), Disposition::open, kNone, 0, access::read_data);
    REQUIRE(file);
    if (i != 0) {
      world.settle();
      world.server_idle = true;
    }
    const auto answer = world.wait(world.send_query_info(*file, file_info::standard));
    REQUIRE(answer);
    const auto info = parse_buffer_response(answer->first().bytes);
    CHECK(load_le<std::uint64_t>(info->buffer, 8) == 100u + static_cast<unsigned>(i));
    world.server_idle = false;
    CHECK(world.status(world.send_close(*file)) == Status::success);
    world.settle();
  }
}

TEST_CASE("a query sent with the open is waited for, not repeated") {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    World world(seed);
    world.server.files["a"] = "12345";
    REQUIRE(world.connect());
    for (int i = 0; i < 5; ++i) {
      const auto file = world.create("a", Disposition::open, kNone, 0, access::read_data);
      REQUIRE(file);
      const auto answer = world.wait(world.send_query_info(*file, file_info::standard));
      REQUIRE(answer);
      CHECK(answer->header().status == Status::success);
      CHECK(world.status(world.send_close(*file)) == Status::success);
    }
    world.settle();
    // And three with the first, which other programs would have asked.
    CHECK(world.server.done[Command::query_info] == 5 + 3);
  }
}

TEST_CASE("queries are answered locally under an oplock until the file is written") {
  World world(6);
  world.server.files["a"] = "12345";
  REQUIRE(world.connect());
  const auto file = world.create("a", Disposition::open, kBatch);
  const auto size = [&] {
    const auto answer = world.wait(world.send_query_info(*file, file_info::standard));
    REQUIRE(answer);
    return load_le<std::uint64_t>(parse_buffer_response(answer->first().bytes)->buffer, 8);
  };
  CHECK(size() == 5);
  const int asked = world.server.done[Command::query_info];
  CHECK(size() == 5);
  CHECK(world.server.done[Command::query_info] == asked);
  REQUIRE(world.status(world.send_write(*file, 5, "67890")) == Status::success);
  CHECK(size() == 10);
  REQUIRE(world.server.take_oplock(kNone));
  world.settle();
  world.server.files["a"] = "1";  // by the client that broke the oplock
  CHECK(size() == 1);
}

TEST_CASE("a query after a FLUSH goes to the server, which may have updated the file's times only then") {
  World world(7);
  world.server.files["a"] = "12345";
  REQUIRE(world.connect());
  const auto file = world.create("a", Disposition::open, kBatch);
  const auto reaches_server = [&] {
    const int before = world.server.done[Command::query_info];
    REQUIRE(world.status(world.send_query_info(*file, file_info::basic)) == Status::success);
    return world.server.done[Command::query_info] != before;
  };
  REQUIRE(world.status(world.send_write(*file, 0, "hello")) == Status::success);
  CHECK(reaches_server());
  CHECK_FALSE(reaches_server());
  REQUIRE(world.status(world.send_flush(*file)) == Status::success);
  CHECK(reaches_server());
  CHECK_FALSE(reaches_server());
}

TEST_CASE("a size fetched with the open is not returned when it is known to be old") {
  const auto check = [](World& world, const FileId& file, std::size_t size) {
    const int asked = world.server.done[Command::query_info];
    const auto answer = world.wait(world.send_query_info(file, file_info::standard));
    REQUIRE(answer);
    CHECK(load_le<std::uint64_t>(parse_buffer_response(answer->first().bytes)->buffer, 8) == size);
    CHECK(world.server.done[Command::query_info] == asked + 1);
  };
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed << ": the oplock is taken back that we held for the client");
    World world(seed);
    world.server.files["a"] = "12345";
    REQUIRE(world.connect());
    const auto file = world.create("a", Disposition::open, kNone, 0, access::read_data);
    REQUIRE(file);
    world.settle();
    REQUIRE(world.server.take_oplock(kNone));
    world.settle();
    world.server.files["a"] = "1";
    check(world, *file, 1);
  }
  for (const std::string now : {"1", "1234567", ""}) {
    for (std::uint32_t seed = 1; seed <= 30; ++seed) {
      INFO("seed " << seed << ": a READ shows another end, at " << now.size());
      World world(seed);
      world.server.oplocks = false;
      world.server.files["a"] = "12345";
      REQUIRE(world.connect());
      const auto file = world.create("a", Disposition::open, kNone, 0, access::read_data);
      REQUIRE(file);
      world.settle();
      world.server.files["a"] = now;
      CHECK(world.status(world.send_read(*file, 0, 100)) ==
            (now.empty() ? Status::end_of_file : Status::success));
      check(world, *file, now.size());
    }
  }
}

TEST_CASE(
    "a CLOSE is answered locally under a batch oplock, and requests that depend on it wait at the server") {
  World world(7);
  world.server.files["a"] = "12345";
  REQUIRE(world.connect());
  const auto file = world.create("a", Disposition::open, kNone, 0, access::read_data);  // held for the client
  world.settle();
  world.server_idle = true;
  const auto close = world.send_close(*file);
  CHECK(world.answers.contains(close));
  world.settle();
  const auto again = world.send({.credit_charge = 1, .command = Command::echo},
                                [](LittleEndianWriter& w) { w.u16(4), w.u16(0); });
  world.server_idle = false;
  REQUIRE(world.wait(again));
  REQUIRE(world.create("a", Disposition::open, kNone, 0, access::read_data));
  world.settle();
  CHECK(world.near().quiet());
  CHECK_FALSE(world.aborted);
}

TEST_CASE("a CLOSE of a file that was written waits for the server") {
  World world(8);
  REQUIRE(world.connect());
  const auto file = world.create("a", Disposition::overwrite_if, kBatch);
  world.settle();
  REQUIRE(world.status(world.send_write(*file, 0, "hello")) == Status::success);
  world.settle();
  world.server_idle = true;
  const auto close = world.send_close(*file);
  world.settle();
  CHECK_FALSE(world.answers.contains(close));
}

TEST_CASE("a CLOSE of a file that was written and flushed does not wait") {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    REQUIRE(world.connect());
    const auto file = world.create("a", Disposition::overwrite_if, kBatch);
    world.settle();
    REQUIRE(world.status(world.send_write(*file, 0, "hello")) == Status::success);
    const auto flush = world.send_flush(*file);
    if (seed % 3 == 0) REQUIRE(world.status(world.send_write(*file, 5, " again")) == Status::success);
    CHECK(world.status(flush) == Status::success);
    world.settle();
    world.server_idle = true;
    const auto close = world.send_close(*file);
    world.settle();
    CHECK(world.answers.contains(close) == (seed % 3 != 0));
    world.server_idle = false;
    CHECK(world.status(close) == Status::success);
    world.settle();
    CHECK(world.near().quiet());
    CHECK_FALSE(world.aborted);
  }
}

TEST_CASE("an open whose FLUSH has reported a loss fails at CLOSE, too") {
  World world(9);
  REQUIRE(world.connect());
  const auto file = world.create("a", Disposition::overwrite_if, kBatch);
  world.settle();
  world.server.fail_write = 0;
  REQUIRE(world.status(world.send_write(*file, 0, "hello")) == Status::success);
  CHECK(world.status(world.send_flush(*file)) == Status::lost_writebehind_data);
  CHECK(world.status(world.send_close(*file)) == Status::lost_writebehind_data);
  world.settle();
  CHECK(world.near().writes().audit().adds_up());
  CHECK_FALSE(world.aborted);
}

TEST_CASE("a file's position is where the client has read to, whoever answered and despite read-ahead") {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    World world(seed);
    world.server.files["a"] = std::string(100'000, 'x');
    REQUIRE(world.connect());
    const auto file = world.create("a", Disposition::open, kBatch);
    if (seed % 2) world.settle();
    const auto position = [&] {
      const auto answer = world.wait(world.send_query_info(*file, file_info::position));
      REQUIRE(answer);
      return load_le<std::uint64_t>(parse_buffer_response(answer->first().bytes)->buffer, 0);
    };
    CHECK(position() == 0);
    REQUIRE(world.status(world.send_read(*file, 1000, 500)) == Status::success);
    CHECK(position() == 1500);
    REQUIRE(world.status(world.send_read(*file, 99'000, 5000)) == Status::success);
    CHECK(position() == 100'000);
  }
}

}  // namespace longhaul::smb::smb2::model
