// SPDX-License-Identifier: Apache-2.0
// Looks at files that were opened ahead for them (look.h, near_opens.h, far_opens.h): a client that opens
// files with an oplock of its own, after a look at each.
#include "proxy/modules/smb/smb2/folder_reader.h"
#include "proxy/modules/smb/smb2/look.h"

namespace longhaul::smb::smb2::model {
namespace {

using namespace std::chrono_literals;

struct LookingReader : FolderReader {
  LookingReader(std::uint32_t seed, int count) : FolderReader(seed, count) {
    server.joins_answers = true;
    // As Linux does when it mounts a share.
    REQUIRE(look(0));
  }

  // The size that it is told, or nothing if the server does not answer. What else it is told is right.
  std::optional<std::uint64_t> look(int i) {
    const auto answer = wait(send_look(path(i)).first);
    if (!answer) return std::nullopt;
    REQUIRE(answer->elements.size() == 3);
    for (const Element& element : answer->elements) CHECK(element.header.status == Status::success);
    CHECK(parse_create_response(answer->first().bytes)->times.last_write == server.written[path(i)]);
    return load_le<std::uint64_t>(parse_buffer_response(answer->elements[1].bytes)->buffer, 8);
  }
  FileId open_own(int i) {
    const auto file = create(path(i), Disposition::open, kBatch, 0, access::read_data | access::synchronize);
    REQUIRE(file);
    return *file;
  }
  void look_and_read(int i) {
    CHECK(look(i) == server.files[path(i)].size());
    const FileId file = open_own(i);
    CHECK(read(file) == server.files[path(i)]);
    REQUIRE(status(send_close(file)) == Status::success);
  }
  void in_order(int begin, int end) {
    for (int i = begin; i < end; ++i) {
      look_and_read(i);
      settle();
    }
  }
};

TEST_CASE("looks at files that are read in sequence are answered locally, and hinder no open") {
  LookingReader world(1, 40);
  world.list();
  world.in_order(0, 10);
  for (int i = 10; i < 14; ++i) {
    world.server_idle = true;
    CHECK(world.look(i) == world.server.files[world.path(i)].size());
    world.server_idle = false;
    const FileId file = world.open_own(i);
    CHECK(world.server.opens_of(world.path(i)) == 1);
    CHECK(world.read(file) == world.server.files[world.path(i)]);
    REQUIRE(world.status(world.send_close(file)) == Status::success);
    world.settle();
  }
  CHECK(world.near_counters().opens_ahead_used >= 4);
  CHECK(world.server.met_oplocks == 0);
  REQUIRE(world.server.opens_of(world.path(14)) == 1);
  CHECK(world.server.reads[world.path(13)] > 0);
  CHECK(world.server.reads[world.path(14)] == 0);
  world.end();
}

TEST_CASE("strict: looks are answered locally in a long folder, too") {
  LookingReader world(1, 200);
  world.switch_relaxed(false);
  world.list();
  world.in_order(0, 100);
  const auto used = world.near_counters().opens_ahead_used;
  world.in_order(100, 150);
  CHECK(world.near_counters().opens_ahead_used == used + 50);
  CHECK(world.server.met_oplocks == 0);
  world.client_ends();
  world.settle();
  CHECK_FALSE(world.aborted);
}

TEST_CASE("a look does not wait for an open of the far half, which may wait for another client") {
  LookingReader world(1, 40);
  world.list();
  world.in_order(0, 8);
  world.server.puts_off = Command::create;
  CHECK(world.look(8));
  world.settle();
  // Opened since then, but not by the server yet.
  int next = 9;
  while (world.server.opens_of(world.path(next)) != 0) ++next;
  REQUIRE(world.server.waiting_creates() == std::vector{world.path(next)});
  CHECK(world.look(next));
  // Nor does anything else.
  const MessageId own = world.send_create(world.path(next), Disposition::open, kBatch);
  world.settle();
  CHECK(world.server.waiting_creates() == std::vector(2, world.path(next)));
  CHECK(world.look(30));
  const auto other = world.opened(world.send_create_and_query(world.path(31)).first);
  REQUIRE(other);
  REQUIRE(world.status(world.send_close(*other)) == Status::success);
  world.server.puts_off.reset();
  const auto file = world.opened(own);
  REQUIRE(file);
  REQUIRE(world.status(world.send_close(*file)) == Status::success);
  world.end();
}

TEST_CASE("answers that are never complete end the opens for looks") {
  LookingReader world(1, 100);
  world.list();
  world.server.failing_alone[Command::query_info] = Status::buffer_overflow;
  world.in_order(0, 30);
  const int before = world.server.done[Command::create];
  world.in_order(30, 60);
  CHECK(world.server.done[Command::create] == before + 60);
  world.end();
}

TEST_CASE("relaxed: a look is not answered from a file that was opened more than two seconds before") {
  LookingReader world(1, 40);
  world.list();
  world.in_order(0, 10);
  const auto used = world.near_counters().opens_ahead_used;
  CHECK(world.look(10));
  CHECK(world.near_counters().opens_ahead_used == used + 1);
  world.pass(2001ms);
  CHECK(world.look(11));
  CHECK(world.near_counters().opens_ahead_used == used + 1);
  world.end();
}

TEST_CASE("looks are answered locally on a long line, too") {
  const bool relaxed = GENERATE(true, false);
  LookingReader world(1, 100);
  world.round_trip(600ms);
  world.switch_relaxed(relaxed);
  world.list();
  std::uint64_t used = 0;
  for (int i = 0; i < 60; ++i) {
    if (i == 30) used = world.near_counters().opens_ahead_used;
    world.look_and_read(i);
    world.pass(650ms);
    world.settle();
  }
  CHECK(world.near_counters().opens_ahead_used >= used + 25);
  CHECK_FALSE(world.aborted);
}

TEST_CASE("a client that only looks at files gets none opened ahead") {
  LookingReader world(2, 20);
  world.list();
  SECTION("no reads") {
    for (int i = 0; i < 10; ++i) {
      CHECK(world.look(i) == world.server.files[world.path(i)].size());
      world.settle();
    }
  }
  SECTION("no order") {
    for (int i : {5, 2, 19, 7, 0, 12}) world.look_and_read(i);
  }
  SECTION("reads of files elsewhere") {
    world.server.files["elsewhere\\file"] = "bytes";
    const auto file = world.create("elsewhere\\file", Disposition::open, kNone);
    REQUIRE(file);
    for (int i = 0; i < 10; ++i) {
      CHECK(world.look(i));
      CHECK(world.read(*file) == "bytes");
      world.settle();
    }
    REQUIRE(world.status(world.send_close(*file)) == Status::success);
  }
  CHECK(world.server.done[Command::create] == world.creates);
  CHECK(world.near_counters().opens_ahead == 0);
  world.end();
}

TEST_CASE("a server that gives no oplocks has few files opened for looks") {
  LookingReader world(2, 40);
  world.server.oplocks = false;
  world.list();
  world.in_order(0, 30);
  CHECK(world.near_counters().opens_ahead == 0);
  CHECK(world.server.done[Command::create] < world.creates + 8);
  world.end();
}

TEST_CASE("a look says what is true, whatever others and the client itself do to files opened for it") {
  std::uint64_t used = 0;
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    LookingReader world(seed, 40);
    world.list();
    const auto some_steps = [&] {
      for (auto steps = random() % 30; steps > 0; --steps) world.step();
    };
    for (int i = 0; i < 40; ++i) {
      world.look_and_read(i);
      some_steps();
      const int other = std::min(39, i + static_cast<int>(random() % 6));
      const std::string name = world.path(other);
      std::string& data = world.server.files[name];
      switch (random() % 6) {
        case 0:  // another client, once it may
          if (world.server.take_oplock(kNone, name)) {
            some_steps();
            for (int steps = 0; world.server.breaking() && steps < 10'000; ++steps) world.step();
            REQUIRE_FALSE(world.server.breaking());
          }
          if (world.server.opens_of(name) == 0) data = "written by another " + std::to_string(random());
          break;
        case 1: {  // this client writes
          const auto file = world.create(name, Disposition::open, kNone, 0,
                                         access::read_data | access::write_data | access::read_attributes);
          REQUIRE(file);
          REQUIRE(world.status(world.send_write(*file, 0, std::string(random() % 60, 'w'))) ==
                  Status::success);
          REQUIRE(world.status(world.send_close(*file)) == Status::success);
          break;
        }
        case 2: {  // this client changes the attributes alone
          const auto file =
              world.create(name, Disposition::open, kNone, 0, access::write_attributes | access::synchronize);
          REQUIRE(file);
          REQUIRE(world.server.opens_of(name) == 1);
          REQUIRE(world.status(world.send_times(*file, 1 + static_cast<int>(random() % 1000))) ==
                  Status::success);
          REQUIRE(world.status(world.send_close(*file)) == Status::success);
          break;
        }
        case 3:  // it looks again, or at another
          CHECK(world.look(other) == data.size());
          break;
        case 4: {  // two at a time, and an open that does not wait for them
          const auto first = world.send_look(name).first, second = world.send_look(name).first;
          const MessageId open = world.send_create(name, Disposition::open, kBatch);
          some_steps();
          for (const MessageId id : {first, second}) REQUIRE(world.status(id) == Status::success);
          const auto file = world.opened(open);
          REQUIRE(file);
          REQUIRE(world.status(world.send_close(*file)) == Status::success);
          break;
        }
        default:
          break;
      }
    }
    used += world.near_counters().opens_ahead_used;
    world.end();
  }
  CHECK(used > 300);
}

TEST_CASE("files opened for looks are closed when none come, and in a long silence") {
  LookingReader world(3, 100);
  world.tell({.since = world.now, .confirmed = world.now, .heard = world.now});
  world.list();
  world.in_order(0, 12);
  REQUIRE(world.server.open_files() > 1);
  SECTION("none come") {
    world.pass(6s);
    world.settle();
  }
  SECTION("the near half may no longer answer from them") {
    world.tell({.since = world.now - 1h, .confirmed = world.now, .heard = world.now});
    const auto used = world.near_counters().opens_ahead_used;
    world.link_cut = true;
    world.pass(11s);
    const MessageId look = world.send_look(world.path(12)).first;
    CHECK_FALSE(world.answers.contains(look));
    CHECK(world.near_counters().opens_ahead_used == used);
    world.pass(2s);
    world.link_cut = false;
    world.tell({.since = world.now, .confirmed = world.now, .heard = world.now});
    CHECK(world.status(look) == Status::success);
    world.settle();
    world.pass(6s);
    world.settle();
  }
  CHECK(world.server.open_files() == 0);
  world.end();
}

}  // namespace
}  // namespace longhaul::smb::smb2::model
