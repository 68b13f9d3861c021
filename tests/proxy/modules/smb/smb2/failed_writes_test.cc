// SPDX-License-Identifier: Apache-2.0
// What becomes of writes that were answered early when the server refuses them, or client, server or session
// end.
#include "proxy/modules/smb/smb2/model.h"

namespace longhaul::smb::smb2::model {

TEST_CASE("a full disk at any write is reported to the client at CLOSE at the latest") {
  for (int full = 0; full < 12; ++full) {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      INFO("write " << full << ", seed " << seed);
      World world(seed * 100 + static_cast<std::uint32_t>(full));
      world.at_each_step = [&] { REQUIRE(promises_add_up(world)); };
      world.server.fail_write = full;
      world.server.failure = seed % 2 ? Status::disk_full : Status::quota_exceeded;
      REQUIRE(world.connect());
      const auto file = world.create("a", Disposition::overwrite_if, seed % 3 ? kBatch : kNone);
      REQUIRE(file);
      if (seed % 4) world.settle();
      std::vector<Status> seen;
      for (int i = 0; i < 12; ++i) {
        seen.push_back(
            world.status(world.send_write(*file, static_cast<std::uint64_t>(i) * 10, "0123456789")));
        if (seen.back() != Status::success) break;
        if (world.server_idle) break;
      }
      seen.push_back(world.status(world.send_close(*file)));
      world.settle();
      // One error at least: the server's for a WRITE of its own, else that something was lost. What only the
      // CLOSE could tell is a reset.
      const bool promised = world.near_counters().promises_failed != 0;
      const Status error = promised ? Status::lost_writebehind_data : world.server.failure;
      const bool earlier = std::count(seen.begin(), seen.end() - 1, error) != 0;
      CHECK(world.aborted == (promised && !earlier));
      if (promised) CHECK(seen.back() == (earlier ? error : Status::pipe_disconnected));
      if (!promised) CHECK((earlier || seen.back() == error));
      CHECK(world.near().writes().audit().outstanding == 0);
      CHECK(world.near().writes().audit().unreported == 0);
    }
  }
}

TEST_CASE("a loss that only CLOSE could report causes a reset after promises of other files are kept") {
  World world(8);
  REQUIRE(world.connect());
  const auto file = world.create("a", Disposition::overwrite_if, kNone);
  const auto other = world.create("b", Disposition::overwrite_if, kNone);
  REQUIRE((file && other));
  world.settle();
  world.server.fail_write = 0;
  REQUIRE(world.status(world.send_write(*file, 0, "hello")) == Status::success);
  world.settle();
  world.server.fail_write = -1;
  world.server_idle = true;
  REQUIRE(world.status(world.send_write(*other, 0, "hello")) == Status::success);
  const auto close = world.send_close(*file);
  world.server_idle = false;
  world.settle();
  CHECK(world.aborted);
  CHECK_FALSE(world.answers.contains(close));
  CHECK(world.server.files["b"] == "hello");
  CHECK(world.near().writes().audit().broken_off == 0);
}

TEST_CASE("a promise that meets an expired session is reported as lost, and is the last one") {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    world.server.files["a"] = world.server.files["b"] = "";
    REQUIRE(world.connect());
    const auto file = world.create("a", Disposition::open, kBatch);
    const auto other = world.create("b", Disposition::open, kBatch);
    REQUIRE((file && other));
    world.settle();
    world.server.failure = Status::network_session_expired;
    world.server.fail_write = 0;
    REQUIRE(world.status(world.send_write(*file, 0, "12345")) == Status::success);
    world.settle();
    REQUIRE(world.near_counters().promises_failed == 1);
    world.server.fail_write = -1;
    REQUIRE(world.status(world.send_session_setup()) == Status::success);
    const auto promised = world.near_counters().promises_made;
    CHECK(world.status(world.send_write(*other, 0, "1")) == Status::success);
    CHECK(world.near_counters().promises_made == promised);
    CHECK(world.status(world.send_flush(*file)) == Status::lost_writebehind_data);
    CHECK(world.status(world.send_flush(*file)) == Status::lost_writebehind_data);
    CHECK_FALSE(world.aborted);
  }
}

TEST_CASE("an oplock held for a client is returned even if its session was renewed, or expired first") {
  for (const bool expired : {false, true}) {
    for (std::uint32_t seed = 1; seed <= 30; ++seed) {
      INFO("seed " << seed << (expired ? ", expired" : ""));
      World world(seed);
      world.server.files["a"] = "12345";
      REQUIRE(world.connect());
      const auto file = world.create("a", Disposition::open, kNone, 0, access::read_data);
      REQUIRE(file);
      world.settle();
      if (expired) {
        const auto written = world.create("b", Disposition::overwrite_if, kNone);
        world.server.failure = Status::network_session_expired;
        world.server.fail_write = 0;
        world.status(world.send_write(*written, 0, "12345"));
        world.settle();
        world.server.fail_write = -1;
      }
      const bool breaks_first = expired && seed % 2;  // then it is given back when the session is good again
      if (breaks_first) REQUIRE(world.server.take_oplock(kNone, "a"));
      if (breaks_first) world.settle();
      REQUIRE(world.status(world.send_session_setup()) == Status::success);
      if (!breaks_first) REQUIRE(world.server.take_oplock(kNone, "a"));
      world.settle();
      CHECK_FALSE(world.server.breaking());
    }
  }
}

TEST_CASE("a server that ends with promises outstanding causes a reset of the client") {
  World world(6);
  REQUIRE(world.connect());
  const auto file = world.create("a", Disposition::overwrite_if, kBatch);
  world.settle();
  world.server_idle = true;
  world.send_write(*file, 0, "hello");
  world.settle();
  world.server_ends();
  world.settle();
  CHECK(world.aborted);
  CHECK_FALSE(world.ended);
}

TEST_CASE("after a client's normal end all acknowledged data is written") {
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    REQUIRE(world.connect());
    const auto file = world.create("a", Disposition::overwrite_if, seed % 2 ? kBatch : kNone);
    REQUIRE(file);
    world.settle();
    std::string expected;
    for (int i = 0; i < 10; ++i) {
      REQUIRE(world.status(world.send_write(*file, static_cast<std::uint64_t>(i) * 10, "0123456789")) ==
              Status::success);
      expected += "0123456789";
    }
    world.client_ends();
    if (seed % 3 == 0) world.server.take_oplock(kNone);
    world.settle();
    CHECK(world.server.files["a"] == expected);
    CHECK(world.ended);
    CHECK_FALSE(world.aborted);
  }
}

TEST_CASE(
    "after a client's reset promises are kept before the server is reset, a failed one is reported later") {
  for (const bool fails : {true, false}) {
    for (std::uint32_t seed = 1; seed <= 30; ++seed) {
      INFO("seed " << seed << (fails ? ", the write fails" : ""));
      auto lost = std::make_shared<LostWrites>();
      {
        World world(seed, lost);
        world.server.files["a"] = "";
        REQUIRE(world.connect());
        const auto file = world.create("a", Disposition::open, kBatch);
        world.settle();
        world.server_idle = true;
        REQUIRE(world.status(world.send_write(*file, 0, "12345")) == Status::success);
        if (fails) world.server.fail_write = 0;
        world.client_ends(modules::Ending::reset);
        CHECK_FALSE(world.aborted);  // what was promised goes first
        world.server_idle = false;
        world.settle();
        CHECK(world.aborted);
        CHECK(world.server.files["a"] == (fails ? "" : "12345"));
      }
      World again(seed, lost);
      again.server.files["a"] = "";
      REQUIRE(again.connect());
      CHECK(again.status(again.send_create("a", Disposition::open, kBatch)) ==
            (fails ? Status::lost_writebehind_data : Status::success));
      REQUIRE(again.create("a", Disposition::open, kBatch));
    }
  }
}

TEST_CASE("an early CLOSE that the server refuses resets, and is on record if the file was written") {
  const auto lost = std::make_shared<LostWrites>(1);
  World world(8, lost);
  world.server.files["a"] = "old";
  REQUIRE(world.connect());
  const auto file = world.create("a", Disposition::open, kBatch);
  world.settle();
  const bool writes = GENERATE(false, true);
  if (writes) REQUIRE(world.status(world.send_write(*file, 0, "hello")) == Status::success);
  REQUIRE(world.status(world.send_flush(*file)) == Status::success);
  world.settle();
  world.server.failing[Command::close] = Status::disk_full;
  const auto close = world.send_close(*file);
  REQUIRE(world.answers.contains(close));
  world.settle();
  CHECK(world.aborted);
  CHECK(lost->waiting() == (writes ? 1 : 0));
}

}  // namespace longhaul::smb::smb2::model
