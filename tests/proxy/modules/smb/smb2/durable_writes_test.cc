// SPDX-License-Identifier: Apache-2.0
// Durable handles and early answers exclude each other: a client that was granted the one gets no other.
#include "proxy/modules/smb/smb2/model.h"

namespace longhaul::smb::smb2::model {
namespace {

constexpr std::size_t kBlock = 65536;

Buffer bytes_of_v2(std::uint32_t flags) {
  Buffer data;
  LittleEndianWriter w(data);
  w.u32(0), w.u32(flags), w.zeros(8), w.zeros(16);
  return data;
}

struct Asked {
  std::string_view context = create_context::durable_v2;
  std::uint32_t flags = 0;
  OplockLevel oplock = OplockLevel::batch;
  std::uint32_t access = 0x1F01FF;
  std::uint32_t options = 0;
};

std::optional<CreateResponse> open_durable(World& world, std::string_view name, const Asked& asked = {}) {
  const std::string wide = utf16(name);
  const Buffer first(16), second = bytes_of_v2(asked.flags);
  CreateRequest request;
  request.oplock = asked.oplock;
  request.desired_access = asked.access;
  request.share_access = 7;
  request.disposition = Disposition::overwrite_if;
  request.options = asked.options;
  request.name = as_bytes(wide);
  request.contexts.push_back(
      {as_bytes(asked.context), asked.context == create_context::durable_v2 ? Bytes(second) : Bytes(first)});
  const Slice made = build_create_request({}, request);
  const auto answer =
      world.wait(world.send({.credit_charge = 1, .command = Command::create},
                            [&](LittleEndianWriter& w) { w.bytes(made.bytes().subspan(4 + kHeaderBytes)); }));
  if (!answer || answer->header().status != Status::success) return std::nullopt;
  return *parse_create_response(answer->first().bytes);
}

void write_one_by_one(World& world, const FileId& file, std::size_t bytes) {
  const std::string data(kBlock, 'x');
  for (std::size_t at = 0; at < bytes; at += kBlock)
    REQUIRE(world.status(world.send_write(file, at, data)) == Status::success);
}

}  // namespace

TEST_CASE("a durable handle stays durable however much is written through it, and gets no promise") {
  World world(1);
  REQUIRE(world.connect());
  const auto context = GENERATE(create_context::durable, create_context::durable_v2);
  for (const std::string_view name : {"a", "b"}) {
    const auto file = open_durable(world, name, {.context = context});
    REQUIRE(file);
    CHECK(file->durable);
    write_one_by_one(world, file->file, 40 * kBlock);
    CHECK(world.status(world.send_close(file->file)) == Status::success);
  }
  CHECK(world.near_counters().promises_made == 0);
}

TEST_CASE("durability that a server ignores without an oplock is not requested with our own oplock") {
  World world(2);
  world.switch_write_behind_cached(false);
  REQUIRE(world.connect());
  const auto file =
      open_durable(world, "a", {.context = create_context::durable, .oplock = OplockLevel::none});
  REQUIRE(file);
  CHECK_FALSE(file->durable);
  CHECK(file->oplock == OplockLevel::none);
  CHECK(world.server.durable_asked.back() == Durable::none);
  world.settle();
  write_one_by_one(world, file->file, 4 * kBlock);
  CHECK(world.near_counters().promises_made == 4);
  CHECK(world.status(world.send_close(file->file)) == Status::success);
  CHECK(world.server.files["a"].size() == 4 * kBlock);
}

TEST_CASE(
    "a request by which a server recognises its replay reaches the server as it is, without an oplock") {
  World world(6);
  REQUIRE(world.connect());
  const auto file = open_durable(world, "a", {.oplock = OplockLevel::none});
  REQUIRE(file);
  CHECK_FALSE(file->durable);  // as without the module
  CHECK(world.server.durable_asked.back() == Durable::request_v2);
  world.settle();
  write_one_by_one(world, file->file, 4 * kBlock);
  CHECK(world.near_counters().promises_made == 0);
  CHECK(world.status(world.send_close(file->file)) == Status::success);
  CHECK(world.server.files["a"].size() == 4 * kBlock);
}

TEST_CASE("a request for a persistent handle, or a reconnect, reaches the server unchanged") {
  World world(3);
  REQUIRE(world.connect());
  SECTION("persistent") {
    REQUIRE(open_durable(world, "a", {.flags = 2, .oplock = OplockLevel::none}));
    CHECK(world.server.durable_asked.back() == Durable::request_v2);
  }
  SECTION("a reconnect") {
    REQUIRE(open_durable(world, "a",
                         {.context = create_context::durable_reconnect, .oplock = OplockLevel::none}));
    CHECK(world.server.durable_asked.back() == Durable::reconnect);
  }
}

TEST_CASE("a durable handle that was requested and not granted prevents nothing") {
  World world(4);
  REQUIRE(world.connect());
  world.server.grants_durable = false;
  const auto file = open_durable(world, "a");
  REQUIRE(file);
  write_one_by_one(world, file->file, 2 * kBlock);
  // The first one may have been done before the room was known.
  CHECK(world.near_counters().promises_made >= 1);
}

TEST_CASE("the first writes of a connection are answered as soon as the free disk space is known") {
  World world(5);
  REQUIRE(world.connect());
  world.server.puts_off = Command::query_info;
  const auto file = world.create("a", Disposition::overwrite_if, OplockLevel::batch);
  REQUIRE(file);
  world.settle();
  world.server.puts_off = Command::write;
  world.server_idle = true;
  const auto first = world.send_write(*file, 0, "hello"), second = world.send_write(*file, 5, "hello");
  world.settle();
  CHECK(world.answers.empty() == false);
  CHECK_FALSE(world.answers.contains(first));
  CHECK_FALSE(world.answers.contains(second));
  SECTION("there is room") {
    world.server_idle = false;
    world.settle();
    CHECK(world.answers.contains(first));
    CHECK(world.answers.contains(second));
    CHECK(world.server.files["a"].empty());
    CHECK(world.near_counters().promises_made == 2);
  }
  SECTION("there is none") {
    world.server.available_bytes = 1000;
    world.server_idle = false;
    world.settle();
    CHECK_FALSE(world.answers.contains(first));
    CHECK(world.near_counters().promises_made == 0);
  }
  SECTION("the server does not report it") {
    world.server.refuses_room = true;
    world.server_idle = false;
    world.settle();
    CHECK_FALSE(world.answers.contains(first));
    CHECK(world.near_counters().promises_made == 0);
  }
  world.server.puts_off.reset();
  CHECK(world.status(first) == Status::success);
  CHECK(world.status(second) == Status::success);
  CHECK(world.status(world.send_close(*file)) == Status::success);
  CHECK(world.server.files["a"] == "hellohello");
  world.settle();
  CHECK(world.near().quiet());
}

TEST_CASE("a client that reopens a file after a reset lost promised writes is told once") {
  const bool anew = GENERATE(false, true);
  const int by = GENERATE(0, 1, 2);
  const auto lost = std::make_shared<LostWrites>();
  std::uint64_t guid = 1;
  {
    World world(6, lost);
    REQUIRE(world.connect());
    const auto file = world.create("a", Disposition::overwrite_if, OplockLevel::batch);
    const auto other = world.create("b", Disposition::overwrite_if, OplockLevel::batch);
    world.settle();
    REQUIRE(world.status(world.send_write(*other, 0, "hello")) == Status::success);
    REQUIRE(world.status(world.send_flush(*other)) == Status::success);
    world.server_idle = true;
    REQUIRE(world.status(world.send_write(*file, 0, "hello")) == Status::success);
    if (by == 1) world.server_ends();
    if (by == 2) world.near().stream_ended(world.now, modules::Ending::reset);
    world.settle();
  }
  // Its GUID is another each time, and that of others may be the same.
  const auto opens = [&](unsigned address, std::string_view name, Disposition disposition,
                         std::uint32_t access = 0x1F01FF) {
    World world(7, lost, std::make_shared<Channels>(), {.client = {std::byte(address)}});
    world.client = ++guid;
    world.server.files["a"] = world.server.files["b"] = "there";
    REQUIRE(world.connect());
    const bool opened = world.create(name, disposition, OplockLevel::none, 0, access).has_value();
    world.client_ends();  // it has had the answer
    return opened;
  };
  CHECK(opens(0, "b", Disposition::open));
  CHECK(opens(2, "a", Disposition::open));
  CHECK(opens(0, "a", Disposition::open, access::read_attributes));
  CHECK_FALSE(opens(0, "a", Disposition::open, access::read_data));
  CHECK(opens(0, "a", Disposition::open, access::read_data));
  CHECK(opens(0, "a", anew ? Disposition::overwrite_if : Disposition::open) == anew);
  CHECK(opens(0, "a", Disposition::open));
}

}  // namespace longhaul::smb::smb2::model
