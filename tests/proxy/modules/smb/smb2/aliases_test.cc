// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/near_aliases.h"

#include "tests/proxy/modules/smb/smb2/model.h"

namespace longhaul::smb::smb2::model {
namespace {

constexpr std::uint32_t kLook = access::read_attributes | access::synchronize;
constexpr std::uint32_t kRead = access::read_data | kLook;

std::optional<FileId> look_at(World& world, std::string_view name, std::uint32_t access = kLook) {
  return world.create(name, Disposition::open, kNone, create_options::non_directory_file, access);
}

// A world with the file "a", open and held.
struct OpenHere {
  explicit OpenHere(std::uint32_t seed, OplockLevel asked = kBatch) : world(seed) {
    world.server.files["a"] = "12345";
    world.server.files["b"] = "1";
    REQUIRE(world.connect());
    file = world.create("a", Disposition::open, asked, 0, kRead | access::write_data);
    REQUIRE(file);
    world.settle();
    creates = world.server.done[Command::create];
  }
  // CREATEs that the server has seen since then.
  int creates_since() { return world.server.done[Command::create] - creates; }

  World world;
  std::optional<FileId> file;
  int creates = 0;
};

}  // namespace

TEST_CASE("an open for attributes of a file that is already held is answered without the server") {
  for (const OplockLevel asked : {kBatch, kNone}) {  // the client's own oplock, or one on its behalf
    OpenHere held(1, asked);
    World& world = held.world;
    REQUIRE(world.status(world.send_query_info(*held.file, file_info::standard)) == Status::success);
    world.settle();
    world.server_idle = true;
    for (int i = 0; i < 3; ++i) {
      const auto look = look_at(world, "a");
      REQUIRE(look);
      CHECK(*look != *held.file);
      const auto answer = world.wait(world.send_query_info(*look, file_info::standard));
      REQUIRE(answer);
      CHECK(load_le<std::uint64_t>(parse_buffer_response(answer->first().bytes)->buffer, 8) == 5);
      CHECK(world.status(world.send_close(*look)) == Status::success);
    }
    world.server_idle = false;
    CHECK(world.status(world.send_close(*held.file)) == Status::success);
    world.settle();
    CHECK(held.creates_since() == 0);
    CHECK(world.near().quiet());
    CHECK(world.far().quiet());
    CHECK_FALSE(world.aborted);
  }
}

TEST_CASE("a query that cannot be answered locally is sent with the handle that the server knows") {
  OpenHere held(2);
  World& world = held.world;
  const auto look = look_at(world, "a");
  REQUIRE(look);
  CHECK(world.status(world.send_query_info(*look, file_info::internal)) == Status::success);
  CHECK(held.creates_since() == 0);
  CHECK(world.status(world.send_close(*look)) == Status::success);
  CHECK(world.status(world.send_query_info(*look, file_info::standard)) == Status::file_closed);
}

TEST_CASE("an alias that outlives its real open is opened at the server before that one closes") {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    OpenHere held(seed, seed % 2 ? kBatch : kNone);
    World& world = held.world;
    const auto one = look_at(world, "a"), other = look_at(world, "a");
    REQUIRE((one && other));
    const auto close = world.send_close(*held.file);
    const auto query = world.send_query_info(*one, file_info::standard);
    CHECK(world.status(close) == Status::success);
    CHECK(world.status(query) == Status::success);
    CHECK(held.creates_since() == 2);
    CHECK(world.status(world.send_close(*one)) == Status::success);
    CHECK(world.status(world.send_query_info(*other, file_info::basic)) == Status::success);
    CHECK(world.status(world.send_close(*other)) == Status::success);
    CHECK(world.status(world.send_close(*other)) == Status::file_closed);
    world.settle();
    CHECK(world.near().quiet());
    CHECK(world.far().quiet());
    CHECK_FALSE(world.aborted);
  }
}

TEST_CASE("an alias is opened at the server even if few message ids are left") {
  for (const std::uint64_t free : {1, 2, 8, 16, 17, 40}) {
    for (std::uint32_t seed = 1; seed <= 10; ++seed) {
      INFO("seed " << seed << ", " << free << " free ids");
      World world(seed);
      world.server.dialect = 0x0302;  // of which some ids are kept for what the client signs
      world.server.most_free_ids = free;
      world.server.files["a"] = "12345";
      REQUIRE(world.connect());
      const auto file = world.create("a", Disposition::open, kBatch, 0, kRead);
      REQUIRE(file);
      world.settle();
      const auto look = look_at(world, "a");
      REQUIRE(look);
      CHECK(world.status(world.send_close(*file)) == Status::success);
      CHECK(world.status(world.send_query_info(*look, file_info::standard)) == Status::success);
      CHECK(world.status(world.send_close(*look)) == Status::success);
      CHECK_FALSE(world.aborted);
    }
  }
}

TEST_CASE("a break opens aliases at the server, and shows another client's changes") {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    OpenHere held(seed, seed % 2 ? kBatch : kNone);
    World& world = held.world;
    const auto look = look_at(world, "a");
    REQUIRE(look);
    REQUIRE(world.status(world.send_query_info(*look, file_info::standard)) == Status::success);
    REQUIRE(world.server.take_oplock(kNone));
    world.settle();
    if (!world.unsolicited.empty())
      REQUIRE(world.status(world.acknowledge(*held.file, kNone)) == Status::success);
    CHECK(held.creates_since() == 1);
    CHECK_FALSE(world.server.breaking());
    world.server.files["a"] = "by somebody else";
    const auto answer = world.wait(world.send_query_info(*look, file_info::standard));
    REQUIRE(answer);
    CHECK(load_le<std::uint64_t>(parse_buffer_response(answer->first().bytes)->buffer, 8) == 16);
    // From here on the server is asked each time.
    const auto again = look_at(world, "a");
    REQUIRE(again);
    CHECK(held.creates_since() == 2);
    CHECK(world.status(world.send_close(*again)) == Status::success);
    CHECK(world.status(world.send_close(*look)) == Status::success);
    world.settle();
    CHECK_FALSE(world.aborted);
  }
}

TEST_CASE("a request that only the server can carry out opens the alias there") {
  OpenHere held(3);
  World& world = held.world;
  const auto look = look_at(world, "a");
  REQUIRE(look);
  CHECK(world.status(world.send_query_info(*look, file_info::access)) == Status::success);
  CHECK(held.creates_since() == 1);
  CHECK(world.status(world.send_flush(*look)) == Status::success);
  CHECK(held.creates_since() == 1);
  CHECK(world.status(world.send_close(*look)) == Status::success);
  CHECK(world.status(world.send_close(*held.file)) == Status::success);
  world.settle();
  CHECK(world.far().quiet());
}

TEST_CASE("a file about to be deleted waits for the opens that the server must know first") {
  OpenHere held(4);
  World& world = held.world;
  const auto look = look_at(world, "a");
  REQUIRE(look);
  const auto set = world.send({.credit_charge = 1, .command = Command::set_info}, [&](LittleEndianWriter& w) {
    w.u16(33), w.u8(1), w.u8(file_info::disposition), w.u32(1), w.u16(96), w.u16(0), w.u32(0);
    put(w, *held.file);
    w.u8(1);
  });
  CHECK(world.status(set) == Status::success);
  CHECK(held.creates_since() == 1);
  REQUIRE(look_at(world, "a"));
  CHECK(held.creates_since() == 2);
}

TEST_CASE("every open that is more than a look at a held file is sent to the server") {
  {
    OpenHere held(5);
    REQUIRE(look_at(held.world, "b"));
    CHECK(held.creates_since() == 1);
    REQUIRE(look_at(held.world, "a", kLook | access::read_control));
    CHECK(held.creates_since() == 2);
    REQUIRE(held.world.create("a", Disposition::open_if, kNone, 0, kLook));
    CHECK(held.creates_since() == 3);
  }
  {
    OpenHere held(6);
    REQUIRE(held.world.status(held.world.send_write(*held.file, 0, "new")) == Status::success);
    REQUIRE(look_at(held.world, "a"));
    CHECK(held.creates_since() == 1);
  }
  {
    World world(7);
    world.server.files["a"] = "12345";
    world.server.oplocks = false;
    REQUIRE(world.connect());
    REQUIRE(world.create("a", Disposition::open, kBatch, 0, kRead));
    const int creates = world.server.done[Command::create];
    REQUIRE(look_at(world, "a"));
    CHECK(world.server.done[Command::create] == creates + 1);
  }
}

TEST_CASE("a handle grants only the requested access") {
  Open open;
  open.access = access::read_data | access::read_attributes;
  CHECK(includes(open, access::read_attributes));
  CHECK_FALSE(includes(open, kLook));
  open.access |= access::generic_read;
  CHECK(includes(open, kLook));
  open.access = access::maximum_allowed;
  CHECK_FALSE(includes(open, access::read_attributes));
}

TEST_CASE("with and without aliases a program gets the same results in any order of operations") {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    OpenHere held(seed, seed % 2 ? kBatch : kNone);
    World& world = held.world;
    std::vector<FileId> looks;
    bool broken = false;
    for (int turn = 0; turn < 30; ++turn) {
      switch (random() % 6) {
        case 0:
        case 1:
          if (const auto look = look_at(world, "a")) looks.push_back(*look);
          break;
        case 2:
          if (looks.empty()) break;
          CHECK(world.status(world.send_close(looks.back())) == Status::success);
          looks.pop_back();
          break;
        case 3: {
          const FileId& file = looks.empty() ? *held.file : looks[random() % looks.size()];
          const auto answer = world.wait(world.send_query_info(file, file_info::standard));
          REQUIRE(answer);
          REQUIRE(answer->header().status == Status::success);
          CHECK(load_le<std::uint64_t>(parse_buffer_response(answer->first().bytes)->buffer, 8) ==
                world.server.files["a"].size());
          break;
        }
        case 4:
          if (random() % 4 == 0) {
            REQUIRE(world.status(world.send_write(*held.file, world.server.files["a"].size(), "more")) ==
                    Status::success);
            world.settle();
          }
          break;
        default:
          if (broken || random() % 6 || !world.server.take_oplock(kNone)) break;
          broken = true;
          world.settle();
          if (!world.unsolicited.empty())
            REQUIRE(world.status(world.acknowledge(*held.file, kNone)) == Status::success);
      }
    }
    CHECK(world.status(world.send_close(*held.file)) == Status::success);
    for (const FileId& look : looks) {
      CHECK(world.status(world.send_query_info(look, file_info::standard)) == Status::success);
      CHECK(world.status(world.send_close(look)) == Status::success);
    }
    world.settle();
    CHECK(world.near().quiet());
    CHECK(world.far().quiet());
    CHECK_FALSE(world.aborted);
  }
}

}  // namespace longhaul::smb::smb2::model
