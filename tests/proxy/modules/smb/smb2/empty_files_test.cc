// SPDX-License-Identifier: Apache-2.0
#include "tests/proxy/modules/smb/smb2/model.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using model::kBatch;
using model::kNone;
using model::World;

TEST_CASE("what leaves an empty file empty is answered before the server has seen it, and done in order") {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    world.at_each_step = [&] { REQUIRE(world.near().writes().audit().adds_up()); };
    world.server.files["a"] = "of before";
    REQUIRE(world.connect());
    const auto file = world.create("a", Disposition::overwrite_if, seed % 2 ? kBatch : kNone);
    REQUIRE(file);
    world.settle();  // the room on the disk is known, and the oplock that the far half holds
    world.server_idle = true;
    for (const auto id : {world.send_flush(*file), world.send_end_of_file(*file, 0), world.send_times(*file),
                          world.send_write(*file, 0, "hello")}) {
      REQUIRE(world.answers.contains(id));
      CHECK(world.status(id) == Status::success);
    }
    world.settle();
    CHECK(world.server.done[Command::flush] == 0);
    const auto close = world.send_close(*file);
    world.settle();
    CHECK_FALSE(world.answers.contains(close));  // waits for all of it
    world.server_idle = false;
    CHECK(world.status(close) == Status::success);
    CHECK(world.server.files["a"] == "hello");
    CHECK(world.server.done[Command::flush] == 1);
    CHECK(world.server.done[Command::set_info] == 2);
    world.settle();
    CHECK(world.near_counters().promises_made == 4);
    CHECK(world.near_counters().promises_kept == 4);
    CHECK(world.near().quiet());
    CHECK_FALSE(world.aborted);
  }
}

TEST_CASE("FLUSH and SET_INFO are answered as servers do") {
  World world(1);
  REQUIRE(world.connect());
  const auto file = world.create("a", Disposition::overwrite_if, kBatch);
  REQUIRE(file);
  world.settle();
  const auto body_of = [&](MessageId id) { return std::string(as_text(world.wait(id)->first().body())); };
  using namespace std::string_literals;
  CHECK(body_of(world.send_flush(*file)) == "\x04\0\0\0"s);       // [MS-SMB2] 2.2.18
  CHECK(body_of(world.send_end_of_file(*file, 0)) == "\x02\0"s);  // 2.2.40
  CHECK(world.near_counters().promises_made == 2);
}

TEST_CASE("a file that was filled before its open was known to be exclusive is no empty one") {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    REQUIRE(world.connect());
    std::optional<FileId> file;
    MessageId written = 0;
    if (seed % 2) {
      const auto [create, write] = world.send_create_and_write("a", "hello");
      file = world.opened(create);
      written = write;
    } else {
      file = world.create("a", Disposition::overwrite_if, kNone);  // Held may be on its way
      REQUIRE(file);
      written = world.send_write(*file, 0, "hello");
    }
    REQUIRE(file);
    CHECK(world.status(written) == Status::success);
    world.settle();
    const auto flush = world.send_flush(*file);
    CHECK_FALSE(world.answers.contains(flush));
    CHECK(world.status(flush) == Status::success);
  }
}

TEST_CASE("what may matter to somebody goes to the server") {
  World world(2);
  REQUIRE(world.connect());
  world.server.files["full"] = "12345";
  std::function<MessageId(const FileId&)> ask;
  std::string name = "a";
  Disposition disposition = Disposition::overwrite_if;
  std::uint32_t options = 0, access = 0x1F01FF;
  SECTION("the file has bytes") {
    name = "full";
    disposition = Disposition::open;
    ask = [&](const FileId& file) { return world.send_flush(file); };
  }
  SECTION("there is no oplock") {
    world.server.oplocks = false;
    ask = [&](const FileId& file) { return world.send_flush(file); };
  }
  SECTION("it was written to") {
    ask = [&](const FileId& file) {
      world.send_write(file, 0, "1");
      world.settle();
      return world.send_flush(file);
    };
  }
  SECTION("it was made longer") {
    ask = [&](const FileId& file) { return world.send_end_of_file(file, 1); };
  }
  SECTION("and then") {
    ask = [&](const FileId& file) {
      world.send_end_of_file(file, 1);
      world.settle();
      return world.send_end_of_file(file, 0);
    };
  }
  SECTION("attributes are set") {
    ask = [&](const FileId& file) { return world.send_times(file, 5, 1); };
  }
  SECTION("a time that no server takes is set") {
    ask = [&](const FileId& file) { return world.send_times(file, -3); };
  }
  SECTION("times may not be set") {
    access = access::write_data;
    ask = [&](const FileId& file) { return world.send_times(file); };
  }
  SECTION("opened for write-through") {
    options = create_options::write_through;
    ask = [&](const FileId& file) { return world.send_flush(file); };
  }
  SECTION("the oplock was taken back") {
    ask = [&](const FileId& file) {
      REQUIRE(world.server.take_oplock(kNone, "a"));
      world.settle();
      return world.send_flush(file);
    };
  }
  SECTION("FLUSH behind something promised") {
    ask = [&](const FileId& file) {
      world.server_idle = true;
      CHECK(world.answers.contains(world.send_end_of_file(file, 0)));
      const auto flush = world.send_flush(file);
      world.settle();
      world.server_idle = false;
      return flush;
    };
  }
  SECTION("the server has refused such before") {
    const auto before = world.create("before", Disposition::overwrite_if, kBatch);
    world.settle();
    world.server.failing[Command::flush] = Status::disk_full;
    world.send_flush(*before);
    world.settle();
    world.server.failing.clear();
    ask = [&](const FileId& file) { return world.send_times(file); };
  }
  const auto file = world.create(name, disposition, kBatch, options, access);
  REQUIRE(file);
  world.settle();
  const auto id = ask(*file);
  CHECK_FALSE(world.answers.contains(id));
  const auto promised = world.near().writes().audit().made;
  CHECK(world.status(id) == Status::success);
  CHECK(world.near().writes().audit().made == promised);
}

TEST_CASE("what fails of it is told with the next answer that can carry it, once") {
  const Command fails = GENERATE(Command::flush, Command::set_info);
  World world(3);
  REQUIRE(world.connect());
  const auto file = world.create("a", Disposition::overwrite_if, kBatch);
  REQUIRE(file);
  world.settle();
  world.server.failing[fails] = Status::disk_full;
  CHECK(world.status(fails == Command::flush ? world.send_flush(*file) : world.send_times(*file)) ==
        Status::success);
  world.settle();
  world.server.failing.clear();
  SECTION("WRITE") {
    CHECK(world.status(world.send_write(*file, 0, "1")) == Status::disk_full);
    CHECK(world.status(world.send_close(*file)) == Status::success);
  }
  SECTION("CLOSE") { CHECK(world.status(world.send_close(*file)) == Status::disk_full); }
  SECTION("SET_INFO carries none, and nothing is answered early any more") {
    const auto id = world.send_end_of_file(*file, 0);
    CHECK_FALSE(world.answers.contains(id));
    CHECK(world.status(id) == Status::success);
    CHECK(world.status(world.send_close(*file)) == Status::disk_full);
  }
  CHECK(world.near().writes().audit().failed == 1);
  CHECK(world.near().writes().audit().reported == 1);
}

TEST_CASE("a reset with nothing but a FLUSH and a size of 0 outstanding has robbed a file of nothing") {
  const bool times = GENERATE(false, true), times_before = GENERATE(false, true);
  const auto lost = std::make_shared<LostWrites>();
  {
    World world(4, lost);
    REQUIRE(world.connect());
    const auto file = world.create("a", Disposition::overwrite_if, kBatch);
    REQUIRE(file);
    world.settle();
    if (times_before) CHECK(world.status(world.send_times(*file)) == Status::success);
    world.settle();
    world.server_idle = true;
    CHECK(world.status(world.send_flush(*file)) == Status::success);
    CHECK(world.status(world.send_end_of_file(*file, 0)) == Status::success);
    if (times) CHECK(world.status(world.send_times(*file)) == Status::success);
    world.near().stream_ended(world.now, modules::Ending::reset);
    world.settle();
    CHECK(world.aborted);
  }
  World again(5, lost);
  again.server.files["a"] = "";
  REQUIRE(again.connect());
  CHECK(again.create("a", Disposition::open, kBatch).has_value() != times);
}
