// SPDX-License-Identifier: Apache-2.0
// What meets files that are open ahead of the client: its own requests, other clients, silences, and a near
// half that gives them up (near_opens.h, far_opens.h).
#include "proxy/modules/smb/smb2/folder_reader.h"

namespace longhaul::smb::smb2::model {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a second open of a file that is open ahead finds it closed") {
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    FolderReader world(seed, 30);
    world.list();
    world.read_in_order(0, 8);
    // The same with another right, before or after what was opened ahead is known to the near half.
    const MessageId read = world.open(8);
    for (std::uint32_t i = seed % 7; i > 0; --i) world.step();
    const auto file =
        world.create(world.path(10), Disposition::open, kNone, 0, access::read_data | access::write_data);
    REQUIRE(file);
    CHECK(world.server.opens_of(world.path(10)) == 1);
    REQUIRE(world.status(world.send_write(*file, 0, "other")) == Status::success);
    REQUIRE(world.status(world.send_close(*file)) == Status::success);
    CHECK(world.server.met_oplocks == 0);
    const auto eight = world.opened(read);
    REQUIRE(eight);
    CHECK(world.read(*eight) == world.server.files[world.path(8)]);
    REQUIRE(world.status(world.send_close(*eight)) == Status::success);
    CHECK(world.read(10) == "other of 1010");
    world.end();
  }
}

TEST_CASE("no file is open ahead during a rename") {
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    FolderReader world(seed, 30);
    world.list();
    world.read_in_order(0, 8);
    const auto directory = world.create("dir", Disposition::open, kNone, create_options::directory_file,
                                        access::delete_file | access::read_attributes);
    REQUIRE(directory);
    const auto file = world.opened(world.open(8));
    REQUIRE(file);
    REQUIRE(world.status(world.send_close(*file)) == Status::success);
    if (seed % 2) world.settle();
    const MessageId rename = world.send_rename(*directory);
    const bool waits = seed % 3;
    std::optional<MessageId> next;
    if (!waits) next = world.open(9);
    CHECK(world.status(rename) == Status::success);
    if (waits) CHECK(world.server.met_oplocks == 0);
    if (!next) next = world.open(9);
    REQUIRE(world.opened(*next));
    REQUIRE(world.status(world.send_close(*world.opened(*next))) == Status::success);
    REQUIRE(world.status(world.send_close(*directory)) == Status::success);
    world.end();
  }
}

TEST_CASE("another client can open a file that is open ahead, and the first client reads its writes") {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    FolderReader world(seed, 40);
    world.list();
    for (int i = 0; i < 40; ++i) {
      CHECK(world.read(i) == world.server.files[world.path(i)]);
      for (auto steps = random() % 30; steps > 0; --steps) world.step();
      if (random() % 3) continue;
      const int other = std::min(39, i + static_cast<int>(random() % 6));
      if (world.server.take_oplock(kNone, world.path(other))) {
        for (auto steps = random() % 30; steps > 0; --steps) world.step();
        // The client may come first, or the other.
        if (random() % 2 && other == i + 1) {
          ++i;
          CHECK(world.read(i) == world.server.files[world.path(i)]);
        }
        for (int steps = 0; world.server.breaking() && steps < 10'000; ++steps) world.step();
        REQUIRE_FALSE(world.server.breaking());
      }
      // Any other client with an open file reads from the server; so does this client.
      if (world.server.opens_of(world.path(other)) == 0)
        world.server.files[world.path(other)] = "written by another " + std::to_string(random());
    }
    world.end();
  }
}

TEST_CASE("a file that was opened ahead can be queried like any other, even if another client wants it") {
  constexpr std::uint32_t kLook = access::read_attributes | access::synchronize;
  std::uint64_t used = 0, looks_without_server = 0;
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    FolderReader world(seed, 30);
    world.list();
    const auto size_of = [&](const FileId& file) {
      const auto answer = world.wait(world.send_query_info(file, file_info::standard));
      REQUIRE(answer);
      REQUIRE(answer->header().status == Status::success);
      return load_le<std::uint64_t>(parse_buffer_response(answer->first().bytes)->buffer, 8);
    };
    for (int i = 0; i < 30; ++i) {
      std::string& data = world.server.files[world.path(i)];
      const auto file = world.create(world.path(i), Disposition::open, kNone, 0, access::read_data | kLook);
      REQUIRE(file);
      const int creates = world.server.opens_of(world.path(i));
      const auto look = world.create(world.path(i), Disposition::open, kNone, 0, kLook);
      REQUIRE(look);
      const bool without_server = world.server.opens_of(world.path(i)) == creates;
      if (without_server) ++looks_without_server;
      for (auto steps = random() % 10; steps > 0; --steps) world.step();
      if (random() % 3 == 0 && world.server.take_oplock(kNone, world.path(i))) {
        for (int steps = 0; world.server.breaking() && steps < 10'000; ++steps) world.step();
        REQUIRE_FALSE(world.server.breaking());
        data = "written by another " + std::to_string(random());
      }
      // What was asked with an open of the server's own is told once, as it was then.
      const std::uint64_t size = size_of(*look);
      if (without_server) CHECK(size == data.size());
      CHECK(size_of(*file) == data.size());
      CHECK(world.read(*file) == data);
      const FileId first = random() % 2 ? *file : *look, last = first == *file ? *look : *file;
      REQUIRE(world.status(world.send_close(first)) == Status::success);
      if (random() % 2) CHECK(size_of(last) == data.size());
      REQUIRE(world.status(world.send_close(last)) == Status::success);
      for (auto steps = random() % 30; steps > 0; --steps) world.step();
    }
    used += world.near_counters().opens_ahead_used;
    world.end();
  }
  CHECK(used > 0);
  CHECK(looks_without_server > 0);
}

TEST_CASE("files opened ahead are unusable after a long silence between the halves") {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    FolderReader folder(seed, 40);
    folder.tell({.since = folder.now, .confirmed = folder.now, .heard = folder.now});
    folder.list();
    folder.read_in_order(0, 10);
    REQUIRE(folder.server.open_files() > 0);
    folder.tell({.since = folder.now - 1h, .confirmed = folder.now, .heard = folder.now});
    const auto heard = folder.now;
    folder.link_cut = true;
    REQUIRE(folder.server.take_oplock(kNone));
    folder.settle();
    folder.pass(heard + 11s - folder.now);
    folder.settle();
    CHECK(folder.server.breaking());
    const auto given = folder.near_counters().opens_ahead_used;
    const MessageId asked = folder.open(10);
    CHECK(folder.near_counters().opens_ahead_used == given);
    CHECK_FALSE(folder.answers.contains(asked));
    folder.pass(heard + 12s + 1ms - folder.now);
    folder.settle();
    CHECK_FALSE(folder.server.breaking());
    CHECK(folder.server.open_files() == 0);
    folder.link_cut = false;
    folder.tell({.since = folder.now, .confirmed = folder.now, .heard = folder.now});
    const auto file = folder.opened(asked);
    REQUIRE(file);
    CHECK(folder.read(*file) == folder.server.files[folder.path(10)]);
    REQUIRE(folder.status(folder.send_close(*file)) == Status::success);
    folder.end();
  }
}

// A CREATE that crosses its offer is answered by the far half with the open that it has offered, for which it
// counts what it has pushed. The near half must count that, too, although it has no use for it: otherwise a
// READ waits for data that was dropped.
TEST_CASE("a file is read although the near half gives up its offer while the client's open crosses that") {
  const bool silence = GENERATE(false, true);
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(silence, seed);
    FolderReader folder(seed, 60);
    folder.list();
    folder.read_in_order(0, 8);
    // The client takes what it was offered. What the far half opens meanwhile is offered on the way down.
    folder.order = World::Order::down_held;
    int i = 8;
    MessageId create = folder.open(i);
    while (folder.answers.contains(create)) {
      const auto file = folder.opened(create);
      REQUIRE(folder.answers.contains(folder.send_read(*file, 0, 4096)));
      REQUIRE(folder.answers.contains(folder.send_close(*file)));
      folder.settle();
      REQUIRE(folder.server.opens_of(folder.path(++i)) == 1);
      create = folder.open(i);
    }
    folder.settle();
    REQUIRE(folder.server.opens_of(folder.path(i)) == 1);

    if (silence) {
      const auto heard = folder.now - link::kApart - 1s;
      folder.tell({.since = TimePoint{} + 1ms, .confirmed = heard, .heard = folder.now});
    } else {
      folder.account->most_bytes = folder.account->held_bytes;
    }
    const auto given_up = folder.near_counters().opens_ahead_wasted;
    folder.order = World::Order::any;
    const auto file = folder.opened(create);
    REQUIRE(file);
    CHECK(folder.near_counters().opens_ahead_wasted > given_up);
    CHECK(folder.read(*file) == folder.server.files[folder.path(i)]);

    if (silence) folder.tell({.since = folder.now, .confirmed = folder.now, .heard = folder.now});
    folder.account->most_bytes = AheadAccount{}.most_bytes;
    // Its oplock is given back like that of any other.
    folder.settle();
    REQUIRE(folder.server.take_oplock(kNone, folder.path(i)));
    folder.settle();
    CHECK_FALSE(folder.server.breaking());
    REQUIRE(folder.status(folder.send_close(*file)) == Status::success);
    folder.read_in_order(i + 1, i + 4);
    folder.end();
  }
}

TEST_CASE("a session that starts signing gets no files that were opened ahead") {
  FolderReader world(5, 30);
  world.list();
  world.read_in_order(0, 8);
  const MessageId echo =
      world.send({.credit_charge = 1, .command = Command::flush, .flags = header_flags::is_signed},
                 [](LittleEndianWriter& w) { w.u16(24), w.zeros(22); });
  REQUIRE(world.wait(echo));
  const std::uint64_t used = world.near_counters().opens_ahead_used;
  const auto file = world.opened(world.open(8));
  REQUIRE(file);
  CHECK(world.near_counters().opens_ahead_used == used);
  CHECK(world.read(*file) == world.server.files[world.path(8)]);
}

}  // namespace
}  // namespace longhaul::smb::smb2::model
